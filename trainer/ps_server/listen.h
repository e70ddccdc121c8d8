// The address of a server: on one machine a socket beside its agent's, in a job over several hosts
// a tcp port.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/os/port_range.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "trainer/client/environment.h"

namespace antdt::ps {

// The settings in the job's configuration.
struct ListenConfig {
  std::vector<std::string> hosts;  // agents, "address:port"
  std::string interface;  // of this machine; empty: the interface of the address in `hosts`
  PortRange ports;

  [[nodiscard]] bool over_tcp() const { return hosts.size() > 1; }
};

// kUsage if it cannot be read.
[[nodiscard]] Result<ListenConfig> parse_listen_config(const std::string& config_json);

struct Listening {
  transport::Socket socket;
  std::string endpoint;  // as others are told it: a path, or "tcp://address:port"
};

// For tcp the context must authenticate already. The error says which address or ports it was, and
// what to change.
[[nodiscard]] Result<Listening> listen(transport::Context& context,
                                       const client::Environment& environment,
                                       const ListenConfig& config, const transport::KeyPair& own);

// Servers write their parts of checkpoints below the run's directory on their host, which is made
// if it is missing. kUsage, with the way out, if that fails; kRefused if the directory belongs to
// another run.
[[nodiscard]] Status check_run_directory(const std::string& run_dir, const std::string& job,
                                         const std::string& host);

}  // namespace antdt::ps
