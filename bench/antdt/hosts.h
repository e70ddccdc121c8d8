// Agents on this machine that a job sees as several hosts, for benchmarks about where its processes
// run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/antdt/process.h"
#include "core/os/fs.h"
#include "core/result.h"

namespace antdt::bench {

// Ends the agents when it is destroyed.
class BenchHosts {
 public:
  // An agent on 127.0.0.1 for each name; returns when all of them listen. Their logs are
  // `logs`/NAME.log. The error names the agent that does not start.
  [[nodiscard]] static Result<std::unique_ptr<BenchHosts>> start(
      const std::vector<std::string>& names, const std::string& logs);

  [[nodiscard]] const std::vector<std::string>& addresses() const { return addresses_; }
  // The directory for cluster.keys.
  [[nodiscard]] std::string keys() const { return directory_ / "keys"; }

 private:
  BenchHosts() = default;
  [[nodiscard]] Status start_agent(const std::string& program, const std::string& name,
                                   const std::string& log);

  const TempDir directory_;  // keys, state and sockets; outlives the agents
  std::vector<std::string> addresses_;
  std::vector<BenchProcess> agents_;
};

}  // namespace antdt::bench
