// A report with something of everything that becomes a metric.
#pragma once

#include "ctl/job/report.h"

namespace antdt::ctl {

inline JobReport example_report() {
  JobReport r;
  r.job = "ctr-01";
  r.state = JobState::kTraining;
  r.generation = Generation{2};
  r.epochs = 2;
  r.samples_total = 1600;
  r.samples_done = 800;
  r.samples_per_second = 100;
  r.train_loss = 0.5;
  WorkerReport w0;
  w0.worker = WorkerId{'w', 0};
  w0.host = "a";
  w0.state = ProcessState::kStarted;
  WorkerReport w1 = w0;
  w1.worker.index = 1;
  w1.host = "b";
  w1.rank = 1;
  w1.state = ProcessState::kJoined;
  w1.batch = 16;
  w1.samples_per_second = 50;
  w1.judged = true;
  w1.verdict = {VerdictKind::kTransient, 3, Cause::kThrottled, "held back", {}};
  w1.time.collective_wait = 1;
  r.workers = {w0, w1};
  r.actions = {{1, 1.5, "adjust-batch", "w1", "it is slow", "applied"}};
  r.totals.once = 800;
  r.failures = {{1,
                 WorkerId{'w', 1},
                 Attempt{1},
                 "a",
                 static_cast<std::uint8_t>(FailureClass::kOom),
                 "w1 ran out of memory",
                 1,
                 {}}};
  r.hosts = {{"a", "a:7000", 2, true, false, false, 0}};
  r.budgets = {{"oom", 2, 1}};
  return r;
}

}  // namespace antdt::ctl
