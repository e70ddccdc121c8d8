// The durable state of the ledger, and what each record of the journal changes in it. The same
// function applies a record when it is decided and when the journal is replayed, so that a restart
// arrives at the same state. What is decided is in ledger.h, which records fit in record_checks.h,
// the state as bytes in ledger_image.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/shard_messages.h"
#include "shard_server/ledger/hands.h"
#include "shard_server/ledger/records.h"
#include "shard_server/ledger/stream.h"
#include "shard_server/ledger/supply.h"

namespace antdt::shard_server {

struct LedgerConfig {
  DataSet train;
  DataSet eval;
  // Losses of holders of the same range at which the job stops: it is the range that ends them.
  std::uint32_t retry_limit = 3;
  bool drops_late = false;  // records that came too late to their step: at most once
  Duration recall_again_after = std::chrono::milliseconds(100);
  std::string run = "RUN";  // as an operator names it, in what they are told to do
};

struct Phase {
  std::uint64_t number = 0;  // 0: none yet
  PhaseKind kind = PhaseKind::kTrain;
  Epoch epoch;
};

class LedgerState {
 public:
  LedgerState(const DataSet& train, const DataSet& eval) : train_(train), eval_(eval) {}

  [[nodiscard]] const DataSet& train() const { return train_; }
  [[nodiscard]] const DataSet& eval() const { return eval_; }
  [[nodiscard]] const Phase& phase() const { return phase_; }
  [[nodiscard]] const Supply& supply() const { return supply_; }
  [[nodiscard]] const Hands& hands() const { return hands_; }
  // Every record of the phase is committed or skipped.
  [[nodiscard]] bool complete() const {
    return supply_.ungranted() == 0 && hands_.outstanding() == 0;
  }
  [[nodiscard]] IntervalSet committed_positions() const;
  // Merged over what is committed of an evaluation phase; until the next opens.
  [[nodiscard]] const wire::EvalPartial& evaluation() const { return evaluation_; }

  // What applying a record took from a lost member, to be granted again.
  struct GivenBack {
    Member member;
    Range range;
  };
  using Changes = std::vector<GivenBack>;
  // They cannot fail: what they are given fits (record_checks.h).
  void apply(const ledger::JobDeclared&, Changes&) {}  // these three are for the accounts
  void apply(const ledger::DeliveryChosen&, Changes&) {}
  void apply(const ledger::JobFinished&, Changes&) {}
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
  void apply(const ledger::LedgerRewound& record, Changes& changes);

  // The state as it was, or will be, when just this place is committed; it can be reached.
  void move_to(WorkerId worker, std::uint64_t place);

 private:
  friend class LedgerImage;
  void give_back_all(WorkerId worker, bool suspect, Changes& changes);

  DataSet train_;
  DataSet eval_;
  Phase phase_;
  Supply supply_;
  Hands hands_;
  wire::EvalPartial evaluation_;
};

}  // namespace antdt::shard_server
