// Questions that change nothing: which processes are one server, and whether what an operator
// wishes can be done.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "ctl/lifecycle/lifecycle_events.h"
#include "ctl/lifecycle/state/life_state.h"

namespace antdt::ctl::lifecycle {

// A server is one process, or two: with replicas, and while it is moved.
class ServerPairs {
 public:
  explicit ServerPairs(const LifeState& life) : life_(life) {}

  // Of a server that is two processes, or is moved: the other one's id. Of one of the next size,
  // that it has then.
  [[nodiscard]] WorkerId second_id(const WorkerProcess& server) const;
  [[nodiscard]] const WorkerProcess* second_of(const WorkerProcess& server) const;
  // Both processes of a server that has one are there.
  [[nodiscard]] bool is_moving(const WorkerProcess& server) const;
  // Where two that are one server had better not both be; empty: anywhere.
  [[nodiscard]] std::string host_of_second(const WorkerProcess& server) const;
  // Of each server the process, or the two, that it is when there are so many.
  [[nodiscard]] std::vector<WorkerId> processes_of(std::uint32_t count) const;
  // Those of them that have to be started.
  [[nodiscard]] std::vector<WorkerId> added_for(std::uint32_t count) const;

 private:
  const LifeState& life_;
};

// The error says why not.
class Possible {
 public:
  explicit Possible(const LifeState& life) : life_(life) {}

  [[nodiscard]] Status check(const EvictionRequested& e) const;
  [[nodiscard]] Status check(const RestartRequested& e) const;
  [[nodiscard]] Status check(const WorkerCountRequested& e) const;
  [[nodiscard]] Status check(const ServerCountRequested& e) const;

 private:
  [[nodiscard]] Status check_move(const WorkerProcess& server) const;

  const LifeState& life_;
};

}  // namespace antdt::ctl::lifecycle
