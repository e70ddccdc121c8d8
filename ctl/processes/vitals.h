// Which process hangs, as opposed to one that is only slow, or only waits for another. Pure.
//
// At least once a second a worker's message thread reports which step its training thread completed
// last and what it does now. If a process is silent while its host answers, it hangs (it was
// stopped, or its machine swaps). If no worker completes a step for `hang_after`, those that do not
// wait in the collective are the cause; if all wait, the collective itself is stuck. A slow worker
// does not hang: one step in `hang_after` is enough. Nor does one that evaluates: there are no
// steps, but the training thread accounts for its time after each batch. A worker that reads or
// receives what the others wait for does not hang either, as long as bytes arrive (io_watch.h);
// when none have arrived for `hang_after`, that worker is the cause.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "ctl/processes/io_watch.h"

namespace antdt::ctl {

struct HungMember {
  Member member;
  std::string why;  // the end of "it is ended: …"
};
struct StuckCollective {
  std::string why;
};

class Vitals {
 public:
  explicit Vitals(Duration hang_after) : hang_after_(hang_after), io_(hang_after) {}

  // Begins to watch a process, or stops watching it.
  void watch(Member member, MonoTime now);
  void forget(Member member);
  // Training (or evaluation) goes on from now with this group; empty: nobody is expected to make
  // steps.
  void expect_steps(const std::vector<Member>& group, MonoTime now);
  // Something was heard of a member; a report names its step and activity.
  void heard(Member member, Step step, const std::string& activity, MonoTime now);
  // Evaluates a report, with what the member reads, receives or writes: which bytes have moved. Of
  // a process that is not watched, because it has not joined, only how it opens its data counts.
  IoMoved heard(Member member, const wire::Report& report, MonoTime now);
  [[nodiscard]] const IoWatch& io() const { return io_; }

  using Finding = std::variant<HungMember, StuckCollective>;
  // Each finding is returned once. Afterwards the patience with the member, or with the group,
  // begins anew.
  [[nodiscard]] std::vector<Finding> check(MonoTime now);
  // These members' host does not answer, so their silence means nothing.
  void excuse(const std::vector<Member>& members, MonoTime now);

 private:
  struct Signs {
    MonoTime heard{};
    Step step;
    std::string activity;
    wire::TimeAccount account;  // which the training thread brings up to date after each batch
    MonoTime moved{};           // when step, activity or account last changed
    bool makes_steps = false;   // the member is in the group
  };
  Duration hang_after_;
  IoWatch io_;
  std::map<Member, Signs> signs_;
  std::vector<Member> group_;
  Step step_;           // the furthest step of the group
  MonoTime stepped_{};  // when it last changed
};

}  // namespace antdt::ctl
