// Where a server is reached: on one machine beside its agent's socket, in a job over
// several hosts by tcp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/os/port_range.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "trainer/client/environment.h"

namespace antdt::ps {

// What the job's configuration says of it.
struct ListenConfig {
  std::vector<std::string> hosts;  // agents, "address:port"
  std::string interface;           // of this machine; empty: that of one of `hosts`
  PortRange ports;

  [[nodiscard]] bool over_tcp() const { return hosts.size() > 1; }
};

// kUsage where it cannot be read.
[[nodiscard]] Result<ListenConfig> parse_listen_config(const std::string& config_json);

struct Listening {
  transport::Socket socket;
  std::string endpoint;  // as the others are told: a path, or "tcp://address:port"
};

// For tcp the context authenticates already. An error says which address or ports, and
// what to change.
[[nodiscard]] Result<Listening> listen(transport::Context& context,
                                       const client::Environment& environment,
                                       const ListenConfig& config, const transport::KeyPair& own);

// Servers write their parts of checkpoints below the run's directory of their host, which is made
// where it is not there. kUsage, with the way out, where that cannot be, or where it is the
// directory of another run.
[[nodiscard]] Status check_run_directory(const std::string& run_dir, const std::string& job,
                                         const std::string& host);

}  // namespace antdt::ps
