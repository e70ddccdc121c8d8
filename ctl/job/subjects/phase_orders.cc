#include "ctl/job/subjects/phase_orders.h"

#include <utility>

#include "ctl/job/parts.h"
#include "shard_server/accounts/evaluation.h"

namespace antdt::ctl::job {
namespace {

constexpr Duration kSayAgain = std::chrono::seconds(2);

}  // namespace

void PhaseOrders::open(const wire::PhaseStart& start, Work& work) {
  const shard_server::Ledger& ledger = parts_.records.ledger();
  if (auto told = parts_.series.open_phase(start, ledger.phase(), ledger.committed(), work.now)) {
    work.note("epoch", std::move(*told));
  }
  if (start.what == wire::PhaseKind::kTrain || start.what == wire::PhaseKind::kEval) {
    const bool train = start.what == wire::PhaseKind::kTrain;
    work.note("phase", fmt::format("epoch {}: {} {} records", start.epoch.value + 1,
                                   train ? "training on" : "evaluating on", start.records));
    const shard_server::Pins& pins = parts_.config.ledger.train.pins;
    if (train && pins != parts_.records.accounts().pins()) {
      parts_.records.step(shard_server::ledger::DataPinned{pins}, work);
    }
    parts_.records.step(
        shard_server::ledger::PhaseOpened{
            start.phase, train ? shard_server::PhaseKind::kTrain : shard_server::PhaseKind::kEval,
            start.epoch, start.records},
        work);
  } else {
    parts_.series.end(start.epoch);
    parts_.records.step(shard_server::ledger::JobFinished{}, work);
    finish_said_ = work.now;
    parts_.watching.expect_steps(work);
  }
  wire::PhaseStart said = start;
  said.evaluated = parts_.series.newest_evaluation();
  parts_.members.send_to_group(said, work);
}

void PhaseOrders::announce(const wire::PhaseStart& start, Work& work) {
  parts_.members.send_to_group(as_it_stands(start), work);
  tell_if_drained(work);
}

void PhaseOrders::tell_if_drained(Work& work) {
  const shard_server::Ledger& ledger = parts_.records.ledger();
  const std::uint64_t open = parts_.lifecycle.phase().phase;
  if (!ledger.complete() || ledger.phase().number != open) return;
  work.then(lifecycle::PhaseDrained{open, ledger.committed()});
}

void PhaseOrders::on(const PhaseCompleted& e, Work& work) {
  const wire::PhaseStart open = parts_.lifecycle.phase();
  if (open.phase != e.phase) return;
  if (open.what == wire::PhaseKind::kEval) {
    const auto found = shard_server::metrics(parts_.records.ledger().evaluation());
    work.note("evaluated",
              parts_.series.evaluated(open.epoch,
                                      EpochReport::Eval{found.auc, found.log_loss, found.accuracy,
                                                        found.records, found.named}));
  }
  work.save_image();
  work.then(lifecycle::PhaseDrained{e.phase, parts_.records.ledger().committed()});
}

wire::PhaseStart PhaseOrders::as_it_stands(wire::PhaseStart start) const {
  const shard_server::Ledger& ledger = parts_.records.ledger();
  if (start.phase == ledger.phase().number) start.committed = ledger.committed() + ledger.skipped();
  start.evaluated = parts_.series.newest_evaluation();
  if (start.what == wire::PhaseKind::kFinish) parts_.ring.name_writer(start);
  return start;
}

void PhaseOrders::repeat_finish(Work& work) {
  const bool waits = parts_.lifecycle.state() == JobState::kFinishing && parts_.group.whole();
  if (!waits || work.now - finish_said_ < kSayAgain) return;
  finish_said_ = work.now;
  parts_.group.say_finish_again(work);
}

}  // namespace antdt::ctl::job
