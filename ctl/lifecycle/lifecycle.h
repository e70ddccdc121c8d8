// The life of a job: its workers are started, meet, go through the phases (train 0, eval 0, train
// 1, …, finish) and end. Failures are classed, counted against budgets and followed by new starts,
// until the job is done or a cause ends it.
//
//   kStarting ──processes run──> kForming ──settled──> kTraining <──> kEvaluating
//       │                           │                      │               │
//       │                           │                      └──last phase───┴──> kFinishing ──┐
//       │                           │                      │               │        │        │
//       └── a failure that ends the job, or a stop ────────┴───────────────┴────> kStopping ─┤
//                                                                               all left   v
//                                                                 kDone | kFailed | kStopped
//
// A process that fails becomes a new attempt of the same worker, on a host with room
// (restart = "member"), or all processes are started again together (restart = "gang"). Membership
// decides which workers train meanwhile.
//
// The decisions are divided by subject (lifecycle/turn.h), and so is the state (lifecycle/state/).
//
// A value without I/O. The job daemon owns one. It journals the image (`image()`) whenever
// `PersistImage` is among the effects, before anything else of that step is sent; `restore()` takes
// the last image after a restart.
//
// With parameter servers ([roles.server]) a generation is that of the server group: the workers
// with which the group begins. Servers are started with the workers, and leave when all workers
// have left.
//
// Loose members (a Join with collective = false) do not wait for each other: the first phase opens
// with the first of them. Programs that do not speak the protocol ("torchrun", "exec") have no
// phases: they are done when all have exited.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "ctl/lifecycle/lifecycle_events.h"
#include "ctl/lifecycle/possible.h"
#include "ctl/lifecycle/state/life_state.h"
#include "ctl/processes/hosts.h"
#include "ctl/processes/worker_process.h"

namespace antdt::ctl::lifecycle {

class Lifecycle {
 public:
  explicit Lifecycle(JobSpec spec) : life_(std::move(spec)) {}

  // Appends to `out`.
  void step(const Input& input, MonoTime now, Effects& out);

  [[nodiscard]] LifecycleImage image() const;
  // `group`: the members of the settled generation, if one is settled.
  void restore(LifecycleImage image, std::optional<std::vector<Member>> group);

  [[nodiscard]] JobState state() const { return life_.state(); }
  [[nodiscard]] const std::vector<WorkerProcess>& workers() const { return life_.workers; }
  // The newest failures, of the present incident and a few earlier ones; the others were taken out.
  [[nodiscard]] const std::vector<FailureRecord>& failures() const {
    return life_.incidents.failures();
  }
  // Takes out the failures to which nothing more will be added, or that are too many to keep. They
  // are not part of the image any more.
  [[nodiscard]] std::vector<FailureRecord> take_old_failures() {
    return life_.incidents.take_old();
  }
  [[nodiscard]] const std::optional<Outcome>& outcome() const { return life_.image.outcome; }
  [[nodiscard]] const Hosts& hosts() const { return life_.hosts; }
  // How many more failures of a class the job tolerates.
  [[nodiscard]] std::uint32_t budget_left(FailureClass cls) const {
    return life_.incidents.budget_left(cls);
  }
  [[nodiscard]] const WorkerProcess* find(WorkerId worker) const { return life_.find(worker); }
  [[nodiscard]] bool is_current(Member member) const { return life_.is_current(member); }
  [[nodiscard]] bool welcomes(Member member) const { return life_.welcomes(member); }
  // The open phase (`what` is kNone if none is open).
  [[nodiscard]] wire::PhaseStart phase() const { return life_.phases.open(); }
  // Set if the program has ended the training before its last epoch.
  [[nodiscard]] const std::optional<EarlyEnd>& training_ends() const {
    return life_.phases.ending();
  }
  [[nodiscard]] bool collective() const { return life_.image.collective; }
  [[nodiscard]] bool model_kept() const { return life_.image.model_kept; }
  [[nodiscard]] bool any_checkpoint() const { return life_.checkpoints.any_stored(); }
  // Whether this checkpoint is the trained model, if all is trained.
  [[nodiscard]] bool is_model(std::uint64_t checkpoint) const {
    return state() == JobState::kFinishing &&
           !life_.checkpoints.precedes_model(checkpoint, life_.spec.servers > 0);
  }
  [[nodiscard]] double seconds() const { return life_.seconds(); }
  [[nodiscard]] std::uint32_t servers() const { return life_.servers(); }
  // The number of servers that the job changes to; 0: it does not change.
  [[nodiscard]] std::uint32_t servers_wanted() const { return life_.image.servers_wanted; }

  // Whether an operator's request can be granted; the error says why it cannot.
  template <class Wish>
  [[nodiscard]] Status check(const Wish& wish) const {
    return Possible(life_).check(wish);
  }

 private:
  void check_invariants() const;

  LifeState life_;
};

}  // namespace antdt::ctl::lifecycle

namespace antdt::ctl {
using lifecycle::Lifecycle;
}  // namespace antdt::ctl
