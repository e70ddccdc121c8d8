#include "shard_server/ledger/record_checks.h"

#include <set>

#include "shard_server/accounts/evaluation.h"
#include "shard_server/ledger/ledger_image.h"

namespace antdt::shard_server {

using namespace ledger;

namespace {

Status check_place(const LedgerState& state, Member member, std::uint64_t place) {
  const Holder* found = state.holders().find(member.worker);
  if (found == nullptr || found->attempt != member.attempt) {
    return fail(ErrorKind::kRefused, "{} with attempt {} is not a member", member.worker,
                member.attempt);
  }
  const Holder& holder = *found;
  if (place < holder.place || place > holder.end) {
    return fail(ErrorKind::kRefused,
                "{} (attempt {}) says that its place is {}: it committed {} records before and was "
                "granted {}",
                member.worker, member.attempt, place, holder.place, holder.end);
  }
  return {};
}

// Whether a member that gives late records back can have this `place`.
Status check_late(const LedgerState& state, Member member, std::uint64_t place,
                  std::uint64_t records) {
  const std::uint64_t held = state.holders().all().at(member.worker).end - place;
  if (records <= held) return {};
  return fail(ErrorKind::kRefused,
              "{} (attempt {}) says that {} records came too late: it holds {}", member.worker,
              member.attempt, records, held);
}

// Whether a member can have skipped these records: it holds them, and none is committed.
Status check_skipped(const LedgerState& state, Member member, std::uint64_t place,
                     const std::vector<wire::SkippedRecords>& skipped) {
  if (state.phase().kind != PhaseKind::kTrain) {
    return fail(ErrorKind::kRefused, "records of an evaluation are not accounted as skipped");
  }
  if (skipped.size() > wire::Fetch::kMaxSkipped) {
    return fail(ErrorKind::kRefused, "{} ranges of skipped records in one message; at most {}",
                skipped.size(), wire::Fetch::kMaxSkipped);
  }
  const std::uint64_t end = state.holders().all().at(member.worker).end;
  for (const wire::SkippedRecords& part : skipped) {
    if (part.from < place || part.from >= part.to || part.to > end) {
      return fail(ErrorKind::kRefused,
                  "{} (attempt {}) says that it skipped its records {}:{}: it holds {}:{}",
                  member.worker, member.attempt, part.from, part.to, place, end);
    }
    if (part.reason.size() > wire::SkippedRecords::kMaxReason) {
      return fail(ErrorKind::kRefused, "the reason of a skip has {} bytes; at most {}",
                  part.reason.size(), wire::SkippedRecords::kMaxReason);
    }
  }
  return {};
}

Status check_domain(const LedgerState& state, Member member, DomainNumber domain) {
  if (state.knows(domain)) return {};
  return fail(ErrorKind::kRefused, "{} is in domain {}, to which no record can be pinned",
              member.worker, domain);
}

}  // namespace

Status check(const LedgerState& state, const DataPinned& event) {
  if (state.train().pins.extend(event.pins)) return {};
  return fail(ErrorKind::kRefused,
              "the records are pinned to other domains than those of this job's data");
}

Status check(const LedgerState& state, const PhaseOpened& event) {
  if (event.phase <= state.phase().number) {
    return fail(ErrorKind::kRefused, "phase {} cannot open: phase {} is open or was", event.phase,
                state.phase().number);
  }
  if (!state.complete()) {
    return fail(ErrorKind::kRefused,
                "phase {} cannot open: {} records of phase {} are not committed", event.phase,
                state.supply().ungranted() + state.holders().outstanding(), state.phase().number);
  }
  const DataSet& data = event.kind == PhaseKind::kTrain ? state.train() : state.eval();
  if (event.records != 0 && !has_had(data, event.records)) {
    return fail(ErrorKind::kRefused, "phase {} cannot open with {} records: the data have {}",
                event.phase, event.records, data.records);
  }
  return {};
}

Status check(const LedgerState& state, const MemberAdmitted& event) {
  ANTDT_RETURN_IF_ERROR(check_domain(state, event.member, event.domain));
  const Holder* found = state.holders().find(event.member.worker);
  if (found == nullptr) return {};
  const Holder& holder = *found;
  if (event.member.attempt < holder.attempt ||
      (event.member.attempt == holder.attempt && !holder.active)) {
    return fail(ErrorKind::kRefused,
                "{} cannot join with attempt {}, which was lost or replaced: the newest is {}",
                event.member.worker, event.member.attempt, holder.attempt);
  }
  return {};
}

Status check(const LedgerState& state, const MemberLost& event) {
  const Holder* found = state.holders().find(event.member.worker);
  if (found == nullptr || !found->active || found->attempt != event.member.attempt) {
    return fail(ErrorKind::kRefused, "{} with attempt {} is not a member", event.member.worker,
                event.member.attempt);
  }
  return {};
}

Status check(const LedgerState& state, const MemberLeft& event) {
  return check(state, MemberLost{event.member});
}

Status check(const LedgerState& state, const GenerationSettled& event) {
  for (const auto& [worker, holder] : state.holders().all()) {
    if (holder.active && holder.generation >= event.generation) {
      return fail(ErrorKind::kRefused, "generation {} cannot settle: {} is of generation {}",
                  event.generation, worker, holder.generation);
    }
  }
  if (!event.domains.empty() && event.domains.size() != event.members.size()) {
    return fail(ErrorKind::kRefused, "generation {} cannot settle: {} members are in {} domains",
                event.generation, event.members.size(), event.domains.size());
  }
  for (std::size_t i = 0; i < event.domains.size(); ++i) {
    ANTDT_RETURN_IF_ERROR(check_domain(state, event.members[i], event.domains[i]));
  }
  std::set<WorkerId> placed;
  for (const OldPlace& old : event.places) {
    ANTDT_RETURN_IF_ERROR(check_place(state, old.member, old.place));
    if (!placed.insert(old.member.worker).second) {
      return fail(ErrorKind::kRefused, "generation {} cannot settle: it has two places of {}",
                  event.generation, old.member.worker);
    }
  }
  for (const Member& member : event.members) {
    const Holder* found = state.holders().find(member.worker);
    if (found != nullptr && member.attempt < found->attempt) {
      return fail(ErrorKind::kRefused, "generation {} cannot settle: {} is at attempt {}, not {}",
                  event.generation, member.worker, found->attempt, member.attempt);
    }
  }
  return {};
}

namespace {

// Members may give different names, and all of them together are still few.
Status check_names(const LedgerState& state, const std::vector<wire::EvalPartial>& partials) {
  wire::NamedSums all = state.evaluation().named;
  for (const wire::EvalPartial& partial : partials) wire::add(all, partial.named);
  if (all.size() <= wire::NamedSum::kMostNames) return {};
  return fail(
      ErrorKind::kRefused,
      "partial evaluation: with it the members gave {} named sums, {} at most: give each the "
      "same names",
      all.size(), wire::NamedSum::kMostNames);
}

}  // namespace

Status check(const LedgerState& state, const FetchRequested& event) {
  if (event.seq == 0) return fail(ErrorKind::kRefused, "a fetch without a number (seq)");
  ANTDT_RETURN_IF_ERROR(check_place(state, event.member, event.request.place));
  if (event.request.late > 0) {
    if (state.phase().kind != PhaseKind::kTrain) {
      return fail(ErrorKind::kRefused,
                  "records come too late in an evaluation, which has no steps");
    }
    ANTDT_RETURN_IF_ERROR(check_late(state, event.member, event.request.place, event.request.late));
  }
  if (!event.request.skipped.empty()) {
    ANTDT_RETURN_IF_ERROR(check_skipped(state, event.member,
                                        state.holders().all().at(event.member.worker).place,
                                        event.request.skipped));
  }
  for (const wire::EvalPartial& partial : event.request.partials) {
    if (state.phase().kind != PhaseKind::kEval) {
      return fail(ErrorKind::kRefused, "a partial evaluation in a training phase");
    }
    ANTDT_RETURN_IF_ERROR(check_partial(partial));
  }
  return check_names(state, event.request.partials);
}

Status check(const LedgerState& state, const FetchAnswered& record) {
  ANTDT_RETURN_IF_ERROR(check_place(state, record.member, record.place));
  const DomainNumber domain = state.holders().all().at(record.member.worker).domain;
  ANTDT_RETURN_IF_ERROR(state.supply().check_free(record.granted, record.member.worker, domain));
  for (const wire::EvalPartial& partial : record.partials) {
    ANTDT_RETURN_IF_ERROR(check_partial(partial));
  }
  return check_names(state, record.partials);
}

Status check(const LedgerState& state, const RecordsSkipped& record) {
  const Holder* holder = state.holders().find(record.member.worker);
  const std::uint64_t place = holder == nullptr ? 0 : holder->place;
  ANTDT_RETURN_IF_ERROR(check_place(state, record.member, place));
  return check_skipped(state, record.member, place, record.records);
}

Status check(const LedgerState& state, const ProgressReported& event) {
  return check_place(state, event.member, event.place);
}

Status check(const LedgerState& state, const RecallIssued& record) {
  return check_place(state, record.member, record.keep_to);
}

Status check(const LedgerState& state, const RecallSettled& record) {
  return check_place(state, record.member, record.end);
}

Status check(const LedgerState& state, const LateReturned& record) {
  ANTDT_RETURN_IF_ERROR(check(state, record.answered));
  return check_late(state, record.answered.member, record.answered.place, record.records);
}

Status check(const LedgerState& state, const SkipDeclared& event) {
  if (event.phase != state.phase().number) {
    return fail(ErrorKind::kRefused, "records of phase {} cannot be skipped: phase {} is open",
                event.phase, state.phase().number);
  }
  if (event.at.empty() || event.at.to > state.supply().stream().size()) {
    return fail(ErrorKind::kRefused,
                "positions {}:{} cannot be skipped: FROM must be below TO, and TO at most {}",
                event.at.from, event.at.to, state.supply().stream().size());
  }
  if (event.reason.empty()) return fail(ErrorKind::kRefused, "records are skipped for a reason");
  return {};
}

Status check(const LedgerState& state, const PhaseCut& event) {
  if (event.phase != state.phase().number || state.phase().kind != PhaseKind::kTrain) {
    return fail(ErrorKind::kRefused, "the training cannot end in phase {}: phase {} is open",
                event.phase, state.phase().number);
  }
  if (event.reason.empty() || event.reason.size() > wire::SkippedRecords::kMaxReason) {
    return fail(ErrorKind::kRefused, "the training ends for a reason of 1 to {} bytes",
                wire::SkippedRecords::kMaxReason);
  }
  return {};
}

Status check(const LedgerState& state, const LedgerRewound& record) {
  ANTDT_RETURN_IF_ERROR(LedgerImage::read(state.train(), state.eval(), record.ledger_image));
  return {};
}

}  // namespace antdt::shard_server
