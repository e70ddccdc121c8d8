// Queries without side effects: which processes form one server, and whether an operator's request
// can be granted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "ctl/lifecycle/lifecycle_events.h"
#include "ctl/lifecycle/state/life_state.h"

namespace antdt::ctl::lifecycle {

// A server is one process, or two: with replicas, and while it is being moved.
class ServerPairs {
 public:
  explicit ServerPairs(const LifeState& life) : life_(life) {}

  // The id of a server's other process, if the server is two processes or is being moved. For a
  // process of the next group size, the id with that size.
  [[nodiscard]] WorkerId second_id(const WorkerProcess& server) const;
  [[nodiscard]] const WorkerProcess* second_of(const WorkerProcess& server) const;
  // Whether both processes of a server without replicas exist.
  [[nodiscard]] bool is_moving(const WorkerProcess& server) const;
  // The host on which a server's other process runs, which is better avoided for this one; empty:
  // none.
  [[nodiscard]] std::string host_of_second(const WorkerProcess& server) const;
  // The processes of each server if there are `count` servers.
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
  // Whether the job can train without the workers on this host.
  [[nodiscard]] Status check_drain(const HostState& host) const;

 private:
  [[nodiscard]] Status check_move(const WorkerProcess& server) const;

  const LifeState& life_;
};

}  // namespace antdt::ctl::lifecycle
