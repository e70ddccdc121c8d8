// An agent's metrics. Pure functions from values to values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "antdtd/host/host.h"
#include "antdtd/shim/process_key.h"
#include "core/metrics/metric.h"

namespace antdt::antdtd {

// Counted since the agent was started.
class ProcessCounts {
 public:
  void started() { ++started_; }
  void ended(const ExitStatus& status);

  [[nodiscard]] std::uint64_t starts() const { return started_; }
  // By how they ended; each way is there from the start.
  [[nodiscard]] const std::map<std::string_view, std::uint64_t>& ends() const { return ended_; }

 private:
  std::uint64_t started_ = 0;
  std::map<std::string_view, std::uint64_t> ended_{
      {"done", 0}, {"error", 0}, {"out-of-memory", 0}, {"signal", 0}};
};

struct AgentFacts {
  struct Job {
    std::string job;
    std::string user;
    std::uint32_t processes = 0;
    bool attached = false;  // its daemon is connected
  };
  std::string version;
  std::string host;
  Capacity whole;
  Capacity free;  // what no process leases
  std::vector<Job> jobs;
  ProcessCounts counts;
};

// Every sample has the label `host`.
[[nodiscard]] metrics::Families agent_metrics(const AgentFacts& facts);

}  // namespace antdt::antdtd
