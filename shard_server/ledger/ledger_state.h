// The durable state of the ledger, and what each record of the journal changes in it. The same
// function applies a record when it is decided and when the journal is replayed, so a restart
// arrives at the same state. ledger.h has the decisions, record_checks.h says which records fit the
// state, and ledger_image.h turns the state into bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/shard_messages.h"
#include "shard_server/ledger/holders.h"
#include "shard_server/ledger/records.h"
#include "shard_server/ledger/stream.h"
#include "shard_server/ledger/supply.h"

namespace antdt::shard_server {

struct LedgerConfig {
  DataSet train;
  DataSet eval;
  // The job stops when this many holders of the same range were lost: the range may be what ends
  // them.
  std::uint32_t retry_limit = 3;
  bool drops_late = false;  // records that came too late to their step are dropped (at-most-once)
  Duration recall_again_after = std::chrono::milliseconds(100);
  std::string run = "RUN";  // the run as an operator names it, for advice in messages
  // Those whose names are the domains that workers may be in: both data sets have the same names if
  // both are pinned. Empty if neither is.
  [[nodiscard]] const Pins& pins() const { return train.pins.empty() ? eval.pins : train.pins; }
};

struct Phase {
  std::uint64_t number = 0;  // 0: no phase yet
  PhaseKind kind = PhaseKind::kTrain;
  Epoch epoch;
};

class LedgerState {
 public:
  LedgerState(const DataSet& train, const DataSet& eval) : train_(train), eval_(eval) {}

  // The training data as they are now; a phase that was opened before they grew has fewer records.
  [[nodiscard]] const DataSet& train() const { return train_; }
  [[nodiscard]] const DataSet& eval() const { return eval_; }
  [[nodiscard]] const Phase& phase() const { return phase_; }
  [[nodiscard]] const Supply& supply() const { return supply_; }
  [[nodiscard]] const Holders& holders() const { return holders_; }
  // Whether every record of the phase is committed or skipped.
  [[nodiscard]] bool complete() const {
    return supply_.ungranted() == 0 && holders_.outstanding() == 0;
  }
  [[nodiscard]] IntervalSet committed_positions() const;
  // Whether records may be pinned to this domain; 0 is none.
  [[nodiscard]] bool knows(DomainNumber domain) const {
    return domain.value <= std::max(train_.pins.names.size(), eval_.pins.names.size());
  }
  // Records that are not committed and that only workers of this domain train.
  [[nodiscard]] std::uint64_t left_in(DomainNumber domain) const {
    return supply_.ungranted_in(domain) + sums_for(domain).outstanding;
  }
  // The sums over the active members that are given the same records as those of this domain: over
  // all of them if the records of the phase are not pinned.
  [[nodiscard]] Holders::Sums sums_for(DomainNumber domain) const {
    return supply_.is_pinned() ? holders_.sums_of(domain) : holders_.sums_of_all();
  }
  // The merged result of an evaluation phase, as far as it is committed; kept until the next one
  // opens.
  [[nodiscard]] const wire::EvalPartial& evaluation() const { return evaluation_; }

  // What applying a record took from a lost member. It will be granted again.
  struct GivenBack {
    Member member;
    Range range;
  };
  using Changes = std::vector<GivenBack>;
  // Applying cannot fail, because the records were checked before (record_checks.h).
  void apply(const ledger::JobDeclared&, Changes&) {}  // these concern the accounts only
  void apply(const ledger::DeliveryChosen&, Changes&) {}
  void apply(const ledger::DataPinned&, Changes&) {}
  void apply(const ledger::JobFinished&, Changes&) {}
  void apply(const ledger::RecordsSkipped&, Changes&) {}
  void apply(const ledger::PhaseOpened& record, Changes& changes);
  void apply(const ledger::MemberAdmitted& record, Changes& changes);
  void apply(const ledger::MemberLost& record, Changes& changes);
  void apply(const ledger::MemberLeft& record, Changes& changes);
  void apply(const ledger::GenerationSettled& record, Changes& changes);
  void apply(const ledger::FetchAnswered& record, Changes& changes);
  void apply(const ledger::ProgressReported& record, Changes& changes);
  void apply(const ledger::SharesPlanned& record, Changes& changes);
  void apply(const ledger::RecallIssued& record, Changes& changes);
  void apply(const ledger::RecallSettled& record, Changes& changes);
  void apply(const ledger::LateReturned& record, Changes& changes);
  void apply(const ledger::SkipDeclared& record, Changes& changes);
  void apply(const ledger::PhaseCut& record, Changes& changes);
  void apply(const ledger::LedgerRewound& record, Changes& changes);

  // Moves one member to `place`, which must be reachable, as if exactly this were committed.
  void move_to(WorkerId worker, std::uint64_t place);

 private:
  friend class LedgerImage;
  void give_back_all(WorkerId worker, bool suspect, Changes& changes);
  // The data of a phase that has (or, if this is 0, began before phases said it) so many records.
  [[nodiscard]] DataSet data_of(PhaseKind kind, std::uint64_t records) const;

  DataSet train_;
  DataSet eval_;
  Phase phase_;
  Supply supply_;
  Holders holders_;
  wire::EvalPartial evaluation_;
};

}  // namespace antdt::shard_server
