#include "shard_server/ledger/record_codec.h"

#include <utility>

namespace antdt::shard_server {

template <class A>
void io(A& a, typename A::template Ref<MemberShare> x) {
  a(x.worker, x.step_records, x.hold_records);
}
template <class A>
void io(A& a, typename A::template Ref<OldPlace> x) {
  a(x.member, x.place, x.lost);
}
template <class A>
void io(A& a, typename A::template Ref<event::JobDeclared> x) {
  a(x.epochs, x.records, x.uses_ledger);
}
template <class A>
void io(A& a, typename A::template Ref<event::DeliveryChosen> x) {
  a(x.delivery);
}
template <class A>
void io(A&, typename A::template Ref<event::JobFinished>) {}
template <class A>
void io(A& a, typename A::template Ref<event::PhaseOpened> x) {
  a(x.phase, x.kind, x.epoch);
}
template <class A>
void io(A& a, typename A::template Ref<event::MemberAdmitted> x) {
  a(x.member, x.generation);
}
template <class A>
void io(A& a, typename A::template Ref<event::MemberLost> x) {
  a(x.member);
}
template <class A>
void io(A& a, typename A::template Ref<event::Settled> x) {
  a(x.generation, x.places, x.members);
}
template <class A>
void io(A& a, typename A::template Ref<record::Answered> x) {
  a(x.member, x.seq, x.place, x.status, x.retry_ms, x.granted, x.partials);
}
template <class A>
void io(A& a, typename A::template Ref<event::Progress> x) {
  a(x.member, x.generation, x.phase, x.place);
}
template <class A>
void io(A& a, typename A::template Ref<event::Shares> x) {
  a(x.shares);
}
template <class A>
void io(A& a, typename A::template Ref<record::RecallIssued> x) {
  a(x.member, x.number, x.keep_to);
}
template <class A>
void io(A& a, typename A::template Ref<record::Recalled> x) {
  a(x.member, x.generation, x.number, x.phase, x.end);
}
template <class A>
void io(A& a, typename A::template Ref<event::SkipDeclared> x) {
  a(x.phase, x.at, x.reason);
}
template <class A>
void io(A& a, typename A::template Ref<record::Rewound> x) {
  a(x.lineage, x.ledger_image, x.accounts_image);
}
template <class A>
void io(A& a, typename A::template Ref<record::Late> x) {
  a(x.answered, x.records, x.dropped);
}
template <class A>
void io(A& a, typename A::template Ref<event::MemberLeft> x) {
  a(x.member);
}

namespace {

template <class R, std::size_t I = 0>
constexpr std::size_t index_of() {
  if constexpr (std::is_same_v<R, std::variant_alternative_t<I, Record>>) {
    return I;
  } else {
    return index_of<R, I + 1>();
  }
}

// The kind on disk is the alternative's index plus one; a new kind goes last.
template <std::size_t... I>
Record empty_record(std::size_t index, std::index_sequence<I...>) {
  Record record;
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
template std::string encode_record(const event::JobDeclared&);
template std::string encode_record(const event::JobFinished&);
template std::string encode_record(const event::PhaseOpened&);
template std::string encode_record(const event::MemberAdmitted&);
template std::string encode_record(const event::MemberLost&);
template std::string encode_record(const event::Settled&);
template std::string encode_record(const record::Answered&);
template std::string encode_record(const event::Progress&);
template std::string encode_record(const event::Shares&);
template std::string encode_record(const record::RecallIssued&);
template std::string encode_record(const record::Recalled&);
template std::string encode_record(const event::SkipDeclared&);
template std::string encode_record(const record::Rewound&);
template std::string encode_record(const event::MemberLeft&);
template std::string encode_record(const event::DeliveryChosen&);
template std::string encode_record(const record::Late&);

Result<Record> decode_record(std::string_view bytes) {
  constexpr std::size_t kKinds = std::variant_size_v<Record>;
  Reader in(bytes);
  std::uint32_t kind = 0;
  in(kind);
  if (!in.ok() || kind == 0 || kind > kKinds) {
    return fail(ErrorKind::kCorrupt,
                "journal record of kind {}, this build knows 1 to {}: it was written by a newer "
                "release, or is damaged",
                kind, kKinds);
  }
  Record record = empty_record(kind - 1, std::make_index_sequence<kKinds>());
  std::visit([&in](auto& r) { in(r); }, record);
  if (!in.ok() || !in.at_end()) {
    return fail(ErrorKind::kCorrupt, "journal record of kind {} ({} bytes) cannot be read", kind,
                bytes.size());
  }
  return record;
}

}  // namespace antdt::shard_server
