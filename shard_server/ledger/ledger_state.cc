#include "shard_server/ledger/ledger_state.h"

#include <utility>

#include "core/check.h"
#include "shard_server/accounts/evaluation.h"
#include "shard_server/ledger/ledger_image.h"

namespace antdt::shard_server {

using namespace ledger;

IntervalSet LedgerState::committed_positions() const {
  IntervalSet committed;
  committed.add({0, supply_.stream().size()});
  supply_.remove_untrained(committed);
  for (const auto& [worker, holder] : holders_.all()) {
    for (const Range& range : holder.grants) committed.remove(range.at);
  }
  return committed;
}

void LedgerState::apply(const PhaseOpened& record, Changes&) {
  phase_ = {record.phase, record.kind, record.epoch};
  supply_ = Supply(EpochStream(data_of(record.kind, record.records), record.epoch, record.kind));
  evaluation_ = {};
  holders_.begin_phase();
}

DataSet LedgerState::data_of(PhaseKind kind, std::uint64_t records) const {
  DataSet data = kind == PhaseKind::kTrain ? train_ : eval_;
  if (records == 0) records = data.began_with;
  if (records != 0) data.records = records;
  return data;
}

void LedgerState::apply(const MemberAdmitted& record, Changes& changes) {
  const WorkerId worker = record.member.worker;
  if (holders_.find(worker) != nullptr) give_back_all(worker, true, changes);
  holders_.admit({record.member}, {record.domain}, record.generation);
}

void LedgerState::apply(const MemberLost& record, Changes& changes) {
  give_back_all(record.member.worker, true, changes);
  holders_.deactivate(record.member.worker);
}

void LedgerState::apply(const MemberLeft& record, Changes& changes) {
  give_back_all(record.member.worker, false, changes);
  holders_.deactivate(record.member.worker);
}

void LedgerState::apply(const GenerationSettled& record, Changes& changes) {
  for (const OldPlace& old : record.places) {
    holders_.commit(old.member.worker, old.place);
    give_back_all(old.member.worker, old.lost, changes);
  }
  // The members that are not listed give back everything.
  for (const auto& [worker, holder] : holders_.all()) give_back_all(worker, false, changes);
  holders_.deactivate_all();
  holders_.admit(record.members, record.domains, record.generation);
}

void LedgerState::apply(const FetchAnswered& record, Changes&) {
  for (const wire::EvalPartial& partial : record.partials) merge(evaluation_, partial);
  Answer answer{record.seq, phase_.number, record.status, record.retry_ms, {}};
  answer.granted.reserve(record.granted.size());
  for (const Range& range : record.granted) {
    answer.granted.push_back(range.at);
    supply_.take(range.at);
  }
  holders_.answer(record.member.worker, record.place, std::move(answer), record.granted);
}

void LedgerState::apply(const LateReturned& record, Changes& changes) {
  const WorkerId worker = record.answered.member.worker;
  holders_.commit(worker, record.answered.place);
  for (const Range& late : holders_.take_late(worker, record.records, record.dropped)) {
    if (!record.dropped) supply_.give_back(late, worker);
  }
  apply(record.answered, changes);
}

void LedgerState::apply(const ProgressReported& record, Changes&) {
  holders_.commit(record.member.worker, record.place);
}

void LedgerState::apply(const SharesPlanned& record, Changes&) {
  holders_.set_shares(record.shares);
}

void LedgerState::apply(const RecallIssued& record, Changes&) {
  holders_.issue_recall(record.member.worker, record.number, record.keep_to);
}

void LedgerState::apply(const RecallSettled& record, Changes&) {
  for (const Range& range : holders_.settle_recall(record.member.worker, record.end)) {
    supply_.give_back(range);
  }
}

void LedgerState::apply(const SkipDeclared& record, Changes&) { supply_.skip(record.at); }

void LedgerState::apply(const PhaseCut&, Changes&) {
  const std::uint64_t records = supply_.stream().size();
  if (records > 0) supply_.skip({0, records});
}

void LedgerState::apply(const LedgerRewound& record, Changes& changes) {
  auto then = LedgerImage::read(train_, eval_, record.ledger_image);
  ANTDT_CHECK(then.has_value(), "rewound to an image that was checked: {}", then.error().message);
  Holders fenced = std::move(holders_);
  *this = std::move(*then);
  for (const auto& [worker, holder] : holders_.all()) give_back_all(worker, false, changes);
  holders_.replace_fenced(std::move(fenced));
}

void LedgerState::move_to(WorkerId worker, std::uint64_t place) {
  place < holders_.all().at(worker).place ? holders_.uncommit(worker, place)
                                          : holders_.commit(worker, place);
}

void LedgerState::give_back_all(WorkerId worker, bool suspect, Changes& changes) {
  for (const Range& range : holders_.take_all(worker, suspect)) {
    supply_.give_back(range);
    if (suspect) changes.push_back({{worker, holders_.all().at(worker).attempt}, range});
  }
}

}  // namespace antdt::shard_server
