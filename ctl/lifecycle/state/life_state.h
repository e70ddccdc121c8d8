// The state of a job's lifecycle, shared by the subjects of one step (turn.h). A part with rules of
// its own is an object; values that several subjects use are members here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "ctl/lifecycle/state/checkpoint_orders.h"
#include "ctl/lifecycle/state/ending.h"
#include "ctl/lifecycle/state/incidents.h"
#include "ctl/lifecycle/state/job_spec.h"
#include "ctl/lifecycle/state/lifecycle_image.h"
#include "ctl/lifecycle/state/phases.h"
#include "ctl/processes/hosts.h"
#include "ctl/processes/worker_process.h"

namespace antdt::ctl::lifecycle {

struct LifeState {
  explicit LifeState(JobSpec s)
      : spec(std::move(s)),
        incidents(spec.budgets, spec.budget_refill, spec.hang_after),
        phases({spec.epochs, spec.train_records, spec.eval_records, spec.began_with}) {
    hosts.keep_in(spec.pinned_to);
  }

  JobSpec spec;
  std::vector<WorkerProcess> workers;
  Hosts hosts;
  Incidents incidents;
  CheckpointOrders checkpoints;
  Phases phases;
  Ending ending;
  // The rest of the durable state. When an image is made, the state of the objects above and the
  // seconds are added.
  LifecycleImage image;
  MonoTime now{};
  std::optional<MonoTime> began;
  double seconds_before = 0;  // seconds of earlier incarnations
  std::optional<MonoTime>
      servers_failed_at;                // when the last change of the number of servers failed
  std::optional<MonoTime> asked_again;  // when the requests to leave were last repeated

  [[nodiscard]] JobState state() const { return static_cast<JobState>(image.state); }
  void set_state(JobState state) { image.state = static_cast<std::uint8_t>(state); }
  // Whether the job has an outcome, so that all processes are to end.
  [[nodiscard]] bool stopping() const { return image.outcome.has_value(); }
  [[nodiscard]] bool is_gang() const {
    return spec.protocol != Protocol::kAntdt || spec.restart == Restart::kGang;
  }
  [[nodiscard]] double seconds() const;  // since the job began, over all incarnations
  [[nodiscard]] const WorkerProcess* find(WorkerId worker) const;
  [[nodiscard]] WorkerProcess* find_mutable(WorkerId worker);
  // Null if this attempt is not the present one.
  [[nodiscard]] WorkerProcess* find_mutable(Member member);
  // Whether this attempt is the present one and has neither ended nor been given up.
  [[nodiscard]] bool is_current(Member member) const;
  // Whether a process that joins now can be of use: at the end of the job newcomers cannot.
  [[nodiscard]] bool welcomes(Member member) const;
  [[nodiscard]] std::string host_name(const std::string& host) const;
  [[nodiscard]] std::uint32_t servers() const;
};

}  // namespace antdt::ctl::lifecycle
