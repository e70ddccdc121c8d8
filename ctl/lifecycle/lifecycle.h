// The life of a job: its workers are started, meet, go through the phases
// (train 0, eval 0, train 1, …, finish) and end; what fails is classed, counted
// and started again, until the job is done or a cause ends it.
//
//   kStarting ──processes run──> kForming ──settled──> kTraining <──>
//   kEvaluating
//        │                           │                     │               │
//        └── a failure that ends it, stop ─────────────────┴───> kStopping─┤
//                                                                          v
//                              kFinishing ──all left──> kDone | kFailed |
//                              kStopped
//
// A process that fails becomes a new attempt of the same worker, on a host with
// room (restart = "member"), or all of them do together (restart = "gang").
// Membership decides who trains meanwhile.
//
// What decides is divided by subject (lifecycle/turn.h), and so is what is kept
// (lifecycle/life_state.h).
//
// A value without I/O. The job daemon owns one and journals its image
// (`image()`) whenever `SaveImage` is among the effects, before anything else
// of that step is sent; `restore()` takes the last image after a restart.
//
// With parameter servers ([roles.server]) a generation is that of the server
// group: the workers that it begins with. Servers begin with the workers, and
// leave when all of these have left.
//
// Loose members (a Join with collective = false) need no meeting: the first
// phase opens with the first of them. Programs that do not speak the protocol
// ("torchrun", "exec") have no phases: they are done when all have exited.
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
  // `group`: the members of the generation that is settled.
  void restore(LifecycleImage image, std::vector<Member> group);

  [[nodiscard]] JobState state() const { return life_.state(); }
  [[nodiscard]] const std::vector<WorkerProcess>& workers() const { return life_.workers; }
  // The newest, of the present incident and a few before; the others were
  // taken.
  [[nodiscard]] const std::vector<FailureRecord>& failures() const {
    return life_.incidents.failures();
  }
  // Failures that nothing more will be said of, or that are too many to wait
  // for it: they are no part of the image any more.
  [[nodiscard]] std::vector<FailureRecord> take_old_failures() {
    return life_.incidents.take_old();
  }
  [[nodiscard]] const std::optional<Outcome>& outcome() const { return life_.image.outcome; }
  [[nodiscard]] const Hosts& hosts() const { return life_.hosts; }
  // How many failures of a class the job bears from now on.
  [[nodiscard]] std::uint32_t budget_left(FailureClass cls) const {
    return life_.incidents.budget_left(cls);
  }
  [[nodiscard]] const WorkerProcess* find(WorkerId worker) const { return life_.find(worker); }
  [[nodiscard]] bool is_current(Member member) const { return life_.is_current(member); }
  [[nodiscard]] bool welcomes(Member member) const { return life_.welcomes(member); }
  // The phase that is open (what is kNone if none is).
  [[nodiscard]] wire::PhaseStart phase() const { return life_.phases.open(); }
  [[nodiscard]] bool collective() const { return life_.image.collective; }
  [[nodiscard]] bool model_kept() const { return life_.image.model_kept; }
  [[nodiscard]] double seconds() const { return life_.seconds(); }
  [[nodiscard]] std::uint32_t servers() const { return life_.servers(); }
  // That they are about to become; 0: they stay as many.
  [[nodiscard]] std::uint32_t servers_wanted() const { return life_.image.servers_wanted; }

  // Whether an operator's wish can be done; the error says why not.
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
