// A plan from what an ended run measured.
#include <fmt/format.h>

#include <algorithm>

#include "core/names.h"
#include "core/sync_strategy.h"
#include "launcher/commands/plan/make_plan.h"
#include "launcher/commands/show/runs.h"
#include "launcher/view/summary_view.h"

namespace antdt::cli {
namespace {

namespace plan = launcher::plan;

plan::Strategy strategy_of(const launcher::JobConfig& config) {
  switch (by_name<SyncStrategy>(config.trainer.sync).value_or(SyncStrategy::kAllReduce)) {
    case SyncStrategy::kPsBsp:
      return plan::Strategy::kServersBsp;
    case SyncStrategy::kPsSsp:
      return plan::Strategy::kServersSsp;
    case SyncStrategy::kPsAsp:
      return plan::Strategy::kServersAsp;
    case SyncStrategy::kDsSync:
      return plan::Strategy::kDsSync;
    case SyncStrategy::kShadowEasgd:
      return plan::Strategy::kShadowEasgd;
    case SyncStrategy::kShadowMa:
      return plan::Strategy::kShadowMa;
    case SyncStrategy::kShadowBmuf:
      return plan::Strategy::kShadowBmuf;
    case SyncStrategy::kGaia:
      return plan::Strategy::kGaia;
    case SyncStrategy::kHybrid:
      return plan::Strategy::kHybrid;
    case SyncStrategy::kAllReduce:
      break;
  }
  return config.trainer.embedding_gradients == "sparse" ? plan::Strategy::kAllReduceSparse
                                                        : plan::Strategy::kAllReduce;
}

}  // namespace

Result<Planned> plan_from_run(const std::string& run) {
  ANTDT_TRY(const std::string run_dir, find_job(run));
  ANTDT_TRY(const launcher::JobConfig config, launcher::load_effective(run_dir));
  ANTDT_TRY(const report::Summary summary, launcher::read_summary(run_dir));
  if (summary.samples_trained == 0 || summary.training_seconds <= 0 || summary.workers.empty()) {
    return fail(ErrorKind::kUsage, "the run in {} trained nothing, so it tells of no step",
                run_dir);
  }
  Planned planned;
  plan::Measured& m = planned.measured;
  m.global_batch = static_cast<double>(config.batch.global);
  const double steps = static_cast<double>(summary.samples_trained) / m.global_batch;
  plan::Trial trial;
  trial.strategy = strategy_of(config);
  trial.workers = static_cast<std::uint32_t>(summary.workers.size());
  trial.servers = config.roles.server.count;
  trial.batch = m.global_batch / trial.workers;
  trial.steps = static_cast<std::uint64_t>(std::max(1.0, steps));
  trial.step_s = summary.training_seconds / steps;
  for (const report::WorkerSummary& w : summary.workers) {
    const double own_s = (w.lost_time.compute + w.lost_time.data) / steps;
    trial.own_s += own_s / trial.workers;
    trial.longest_own_s = std::max(trial.longest_own_s, own_s);
  }
  m.hosts = {{"the hosts of the run", 0, trial.workers}};
  if (trial.servers > 0) m.servers = {{trial.servers, {}}};
  for (const plan::StrategyEntry& entry : plan::kStrategies) {
    if (entry.strategy != trial.strategy) {
      m.impossible[entry.strategy] = "the run was not synchronised in this way";
    }
  }
  m.trials = {trial};
  m.notes.emplace_back(
      "a run tells the cost of its own way alone; for others, run the job with them, or use antdt "
      "plan job.toml if its workers are antdt-trainer");
  planned.plan = plan::plan_of(m);
  return planned;
}

}  // namespace antdt::cli
