// Which requests to start or to kill a process are repeated, because its agent has not confirmed
// them. The message may have been lost, and asking twice is safe. Pure; not durable.
#pragma once

#include <map>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "ctl/lifecycle/lifecycle.h"
#include "ctl/lifecycle/lifecycle_events.h"

namespace antdt::ctl {

class ProcessRequests {
 public:
  static constexpr Duration kAgainAfter = std::chrono::seconds(2);

  // An agent was asked to start the process, or to end it.
  void asked(Member member, MonoTime now) { asked_[member] = now; }

  using Request = std::variant<lifecycle::StartWorker, lifecycle::StopWorker>;
  // The requests whose answer is overdue, and those that an earlier incarnation decided.
  [[nodiscard]] std::vector<Request> due(const Lifecycle& life, MonoTime now);

 private:
  std::map<Member, MonoTime> asked_;  // when it was last asked
};

}  // namespace antdt::ctl
