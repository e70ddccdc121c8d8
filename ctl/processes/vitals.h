// Who hangs: told apart from who is merely slow, and from who only waits for
// another. Pure.
//
// A worker's message thread says at least once a second which step its training
// thread completed last and what it does now. Silence of a process whose host
// answers is a hang (a stopped process, a machine that swaps itself to death).
// If nobody completes a step for `hang_after`, those that are not waiting in
// the collective are the cause; if all wait, the collective itself is stuck.
// Slow is not hung: a step in `hang_after` is life enough. Nor is it a hang that somebody
// reads or receives what the others wait for, as long as bytes come (io_watch.h); when none
// have come for `hang_after` that one is the cause.
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

  // A process that is to be watched from now on, and one that is not any more.
  void watch(Member member, MonoTime now);
  void forget(Member member);
  // Training (or evaluating) goes on from now with this group; empty: nobody is
  // expected to make steps.
  void expect_steps(const std::vector<Member>& group, MonoTime now);
  // Anything that was heard of a member; a report names step and activity.
  void heard(Member member, Step step, const std::string& activity, MonoTime now);
  // A report, with what the member reads, receives or writes: which bytes have moved.
  IoMoved heard(Member member, const wire::Report& report, MonoTime now);
  [[nodiscard]] const IoWatch& io() const { return io_; }

  using Finding = std::variant<HungMember, StuckCollective>;
  // Each finding once; after it the member, or the group, has its time anew.
  [[nodiscard]] std::vector<Finding> check(MonoTime now);
  // A host that does not answer says nothing of its workers.
  void excuse(const std::vector<Member>& members, MonoTime now);

 private:
  struct Signs {
    MonoTime heard{};
    Step step;
    std::string activity;
    MonoTime moved{};          // when step or activity changed last
    bool makes_steps = false;  // is in the group
  };
  Duration hang_after_;
  IoWatch io_;
  std::map<Member, Signs> signs_;
  std::vector<Member> group_;
  Step step_;           // the furthest of the group
  MonoTime stepped_{};  // when it changed last
};

}  // namespace antdt::ctl
