#include "shard_server/ledger/record_codec.h"

#include <algorithm>
#include <utility>

namespace antdt::shard_server {

// Whether a record has a last field that an earlier release did not write. `wanted`: a writer
// writes it.
template <class A>
bool has_more(const A& a, bool wanted) {
  if constexpr (requires { a.at_end(); }) {
    return !a.at_end();
  } else {
    return wanted;
  }
}

template <class A>
void io(A& a, typename A::template Ref<MemberShare> x) {
  a(x.worker, x.step_records, x.hold_records);
}
template <class A>
void io(A& a, typename A::template Ref<OldPlace> x) {
  a(x.member, x.place, x.lost);
}
template <class A>
void io(A& a, typename A::template Ref<ledger::JobDeclared> x) {
  a(x.epochs, x.records, x.uses_ledger);
}
template <class A>
void io(A& a, typename A::template Ref<ledger::DeliveryChosen> x) {
  a(x.delivery);
}
template <class A>
void io(A& a, typename A::template Ref<ledger::DataPinned> x) {
  a(x.pins);
}
template <class A>
void io(A&, typename A::template Ref<ledger::JobFinished>) {}
template <class A>
void io(A& a, typename A::template Ref<ledger::PhaseOpened> x) {
  a(x.phase, x.kind, x.epoch);
  if (has_more(a, true)) a(x.records);
}
template <class A>
void io(A& a, typename A::template Ref<ledger::MemberAdmitted> x) {
  a(x.member, x.generation);
  if (has_more(a, x.domain.value != 0)) a(x.domain);
}
template <class A>
void io(A& a, typename A::template Ref<ledger::MemberLost> x) {
  a(x.member);
}
template <class A>
void io(A& a, typename A::template Ref<ledger::GenerationSettled> x) {
  a(x.generation, x.places, x.members);
  if (has_more(a, !x.domains.empty())) a(x.domains);
}
// What is there in every release.
template <class A>
void io_answer(A& a, typename A::template Ref<ledger::FetchAnswered> x) {
  a(x.member, x.seq, x.place, x.status, x.retry_ms, x.granted, x.partials);
}
template <class A>
void io(A& a, typename A::template Ref<ledger::FetchAnswered> x) {
  io_answer(a, x);
  const auto has_named = [](const wire::EvalPartial& p) { return !p.named.empty(); };
  if (!has_more(a, std::ranges::any_of(x.partials, has_named))) return;
  for (auto& partial : x.partials) a(partial.named);
}
template <class A>
void io(A& a, typename A::template Ref<ledger::ProgressReported> x) {
  a(x.member, x.generation, x.phase, x.place);
}
template <class A>
void io(A& a, typename A::template Ref<ledger::SharesPlanned> x) {
  a(x.shares);
}
template <class A>
void io(A& a, typename A::template Ref<ledger::RecallIssued> x) {
  a(x.member, x.number, x.keep_to);
}
template <class A>
void io(A& a, typename A::template Ref<ledger::RecallSettled> x) {
  a(x.member, x.generation, x.number, x.phase, x.end);
}
template <class A>
void io(A& a, typename A::template Ref<ledger::SkipDeclared> x) {
  a(x.phase, x.at, x.reason);
}
template <class A>
void io(A& a, typename A::template Ref<ledger::PhaseCut> x) {
  a(x.phase, x.reason);
}
template <class A>
void io(A& a, typename A::template Ref<ledger::LedgerRewound> x) {
  a(x.lineage, x.ledger_image, x.accounts_image);
}
template <class A>
void io(A& a, typename A::template Ref<ledger::LateReturned> x) {
  io_answer<A>(a, x.answered);  // in training, where nothing is evaluated
  a(x.records, x.dropped);
}
template <class A>
void io(A& a, typename A::template Ref<wire::SkippedRecords> x) {
  a(x.from, x.to, x.reason);
}
template <class A>
void io(A& a, typename A::template Ref<ledger::RecordsSkipped> x) {
  a(x.member, x.records);
}
template <class A>
void io(A& a, typename A::template Ref<ledger::MemberLeft> x) {
  a(x.member);
}

namespace {

template <class R, std::size_t I = 0>
constexpr std::size_t index_of() {
  if constexpr (std::is_same_v<R, std::variant_alternative_t<I, ledger::Record>>) {
    return I;
  } else {
    return index_of<R, I + 1>();
  }
}

template <std::size_t... I>
ledger::Record empty_record(std::size_t index, std::index_sequence<I...>) {
  ledger::Record record;
  ((I == index ? void(record.emplace<I>()) : void()), ...);
  return record;
}

}  // namespace

template <class R>
std::string encode_record(const R& record) {
  Writer out;
  out(static_cast<std::uint32_t>(index_of<R>() + 1), record);
  return out.take();
}
template std::string encode_record(const ledger::JobDeclared&);
template std::string encode_record(const ledger::JobFinished&);
template std::string encode_record(const ledger::PhaseOpened&);
template std::string encode_record(const ledger::MemberAdmitted&);
template std::string encode_record(const ledger::MemberLost&);
template std::string encode_record(const ledger::GenerationSettled&);
template std::string encode_record(const ledger::FetchAnswered&);
template std::string encode_record(const ledger::ProgressReported&);
template std::string encode_record(const ledger::SharesPlanned&);
template std::string encode_record(const ledger::RecallIssued&);
template std::string encode_record(const ledger::RecallSettled&);
template std::string encode_record(const ledger::SkipDeclared&);
template std::string encode_record(const ledger::LedgerRewound&);
template std::string encode_record(const ledger::MemberLeft&);
template std::string encode_record(const ledger::DeliveryChosen&);
template std::string encode_record(const ledger::LateReturned&);
template std::string encode_record(const ledger::RecordsSkipped&);
template std::string encode_record(const ledger::DataPinned&);
template std::string encode_record(const ledger::PhaseCut&);

Result<ledger::Record> decode_record(std::string_view bytes) {
  constexpr std::size_t kKinds = std::variant_size_v<ledger::Record>;
  Reader in(bytes);
  std::uint32_t kind = 0;
  in(kind);
  if (!in.ok() || kind == 0 || kind > kKinds) {
    return fail(ErrorKind::kCorrupt,
                "journal record of kind {}, this build knows 1 to {}: it was written by a newer "
                "release, or is damaged",
                kind, kKinds);
  }
  ledger::Record record = empty_record(kind - 1, std::make_index_sequence<kKinds>());
  std::visit([&in](auto& r) { in(r); }, record);
  if (!in.ok() || !in.at_end()) {
    return fail(ErrorKind::kCorrupt, "journal record of kind {} ({} bytes) cannot be read", kind,
                bytes.size());
  }
  return record;
}

}  // namespace antdt::shard_server
