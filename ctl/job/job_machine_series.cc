// What the workers measured, second by second, for the run's history: sums of their
// reports, with their part of the plan and what the monitor thinks of them.
#include <algorithm>

#include "ctl/job/job_machine.h"

namespace antdt::ctl {
namespace {
constexpr Duration kMoment = std::chrono::seconds(1);
}

void JobMachine::measure(Member m, const wire::Report& sum) {
  if (sum.batches == 0) return;
  shard_server::WorkerMoment& worker = moment_[m.worker];
  worker.member = m;
  worker.batches += sum.batches;
  worker.samples += sum.samples;
  worker.data_us += sum.data_us;
  worker.compute_us += sum.compute_us;
  worker.wait_us += sum.wait_us;
}

void JobMachine::remember_moment(bool ends) {
  const Duration took = now_ - moment_from_;
  if (took < kMoment && !ends) return;
  moment_from_ = now_;
  if (moment_.empty()) return;
  shard_server::history::Measured moment;
  // The first one of an incarnation began with it.
  moment.seconds = std::min(to_seconds(took), lifecycle_.seconds());
  moment.from_s = lifecycle_.seconds() - moment.seconds;
  moment.step = progress_.step();
  moment.samples_done = samples_done();
  moment.loss = progress_.recent_loss().value_or(0);
  for (const wire::PlanEntry& entry : controller_.plan().entries) {
    const auto found = moment_.find(entry.worker);
    if (found == moment_.end()) continue;
    found->second.micro_batch = entry.micro_batch;
    found->second.accumulation = entry.accumulation;
  }
  for (const WorkerView& seen : controller_.view().workers) {
    const auto found = moment_.find(seen.member.worker);
    if (found == moment_.end() || seen.verdict.kind == VerdictKind::kNone) continue;
    found->second.verdict = to_string(seen.verdict.kind);
    if (seen.verdict.cause != Cause::kUnknown) found->second.cause = to_string(seen.verdict.cause);
    found->second.severity = seen.verdict.severity;
  }
  for (auto& [id, worker] : moment_) moment.workers.push_back(std::move(worker));
  moment_.clear();
  out_->emplace_back(out::Remember{std::move(moment)});
}

}  // namespace antdt::ctl
