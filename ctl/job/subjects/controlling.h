// Connects the controller with the job: tells it what happens, stores and sends its plans, records
// its actions and requests them.
#pragma once

#include <cstdint>
#include <set>

#include "core/clock.h"
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
  // The ledger and the servers know the plan, so the members are told it.
  void on(const PlanKept& e, Work& work);
  // The member says which plan it trains with.
  void trains_with(Member member, PlanVersion version, Work& work);
  // Carries out what the controller wants done.
  void carry_out(const control::Effect& effect, Work& work);

  // A member is told only its own part. With the parts of all members, a plan for thousands of them
  // would be millions of entries.
  [[nodiscard]] wire::Plan plan_of(WorkerId worker) const;
  [[nodiscard]] Status check_approve(std::uint64_t number) const;

 private:
  [[nodiscard]] control::AttemptsSeen attempts() const;
  [[nodiscard]] control::TimePassed tick() const;
  void announce(const wire::Plan& plan, Work& work);
  void repeat_plan(Work& work);
  void record(const control::RecordAction& action, Work& work);
  // As applied, or why it was not possible.
  void record(const control::PerformAction& e, const Status& possible, Work& work);
  void perform(const control::PerformAction& e, Work& work);
  template <class Wish>
  void ask(const Wish& wish, const control::PerformAction& e, Work& work);

  Parts& parts_;
  std::set<Member> follow_;  // the members that train with the newest plan
  MonoTime plan_said_{};
};

}  // namespace antdt::ctl::job
