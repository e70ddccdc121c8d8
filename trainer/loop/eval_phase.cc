#include "trainer/loop/eval_phase.h"

namespace antdt::trainer {
namespace {

constexpr Duration kPatience = std::chrono::milliseconds(50);
// Held in hand: enough that the next pieces come while these are computed,
// little enough that the members end together.
constexpr std::uint64_t kHoldBatches = 4;

}  // namespace

Result<PhaseEnd> run_eval_phase(const EvalTools& tools, std::uint32_t batch_size,
                                const Evaluate& evaluate) {
  const Timed other(tools.account, TimeUse::kOther);
  tools.client.set_hold(kHoldBatches * batch_size);
  std::uint64_t place = 0;
  while (!tools.guard.over()) {
    if (tools.stop || tools.client.leave_requested()) return PhaseEnd::kLeave;
    if (tools.client.regroup_requested()) return PhaseEnd::kOver;
    tools.account.enter(TimeUse::kData);
    ANTDT_TRY(const data::Batch batch, tools.prefetcher.next(batch_size, kPatience));
    if (batch.status == client::TakeStatus::kEnd) return PhaseEnd::kDone;
    if (batch.status == client::TakeStatus::kWait) {
      tools.account.enter(TimeUse::kShardWait);
      continue;
    }
    tools.account.enter(TimeUse::kCompute);
    auto partial = evaluate(batch.examples);
    if (!partial && partial.error().kind == ErrorKind::kAborted) return PhaseEnd::kOver;
    if (!partial) return tl::unexpected(partial.error());
    place += batch.examples.count;
    tools.client.commit(place, std::move(*partial));
    tools.client.time_account(tools.account.seconds());
  }
  return PhaseEnd::kOver;
}

}  // namespace antdt::trainer
