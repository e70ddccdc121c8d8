// What the controller is told of the job, and what becomes of what it decides: plans are kept and
// sent, actions are recorded and asked for.
#pragma once

#include <cstdint>

#include "core/ids.h"
#include "core/result.h"
#include "ctl/job/work.h"

namespace antdt::ctl::job {

struct Parts;

class Controlling {
 public:
  explicit Controlling(Parts& parts) : parts_(parts) {}

  void on(const ControlTickPassed& e, Work& work);
  void on(const ApprovalReceived& e, Work& work);
  void on(const DecisionReceived& e, Work& work);
  // The controller has looked at the job.
  void on(const VerdictsDue& e, Work& work);
  // The ledger and the servers know a plan: the members hear it.
  void on(const PlanKept& e, Work& work);
  // What the controller wants done.
  void carry_out(const control::Effect& effect, Work& work);

  // A member is told its own part alone: with everybody's, a plan for thousands would be millions
  // of entries.
  [[nodiscard]] wire::Plan plan_of(WorkerId worker) const;
  [[nodiscard]] Status check_approve(std::uint64_t number) const;

 private:
  [[nodiscard]] control::TimePassed tick() const;
  void announce(const wire::Plan& plan, Work& work);
  void record(const control::RecordAction& action, Work& work);
  void perform(const control::PerformAction& e, Work& work);
  template <class Wish>
  void ask(const Wish& wish, const control::PerformAction& e, Work& work);

  Parts& parts_;
};

}  // namespace antdt::ctl::job
