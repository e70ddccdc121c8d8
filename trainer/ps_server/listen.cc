#include "trainer/ps_server/listen.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/checkpoint/run_owner.h"
#include "core/os/fs.h"
#include "core/os/net.h"
#include "core/os/runtime_dir.h"
#include "core/permutation.h"
#include "core/schema/job_reader.h"

namespace antdt::ps {
namespace {

Result<std::string> own_address(const ListenConfig& config) {
  if (!config.interface.empty()) return interface_address(config.interface);
  std::string address = own_address_among(config.hosts);
  if (!address.empty()) return address;
  return fail(ErrorKind::kUsage,
              "none of [cluster] hosts is an address of this machine: set [cluster] interface to "
              "the network interface by which the other hosts reach this one");
}

// Servers on one host begin at different ports, so that they seldom collide.
std::uint64_t first_choice(const client::Environment& environment) {
  std::uint64_t hash = environment.self.worker.index;
  for (const char c : environment.job) hash = combine_seed(hash, static_cast<unsigned char>(c));
  return hash;
}

Result<transport::Socket> bind_one(transport::Context& context,
                                   const client::Environment& environment,
                                   const ListenConfig& config, const std::string& address,
                                   const transport::KeyPair& own) {
  const PortRange ports = config.ports;
  if (ports.any()) return transport::Socket::bind_tcp(context, with_port(address, 0), own);
  std::string problem;
  for (std::uint32_t n = 0; n < ports.count(); ++n) {
    const auto port = static_cast<std::uint16_t>(ports.at(first_choice(environment), n));
    auto bound = transport::Socket::bind_tcp(context, with_port(address, port), own);
    if (bound) return bound;
    problem = bound.error().message;  // most likely in use, so the next one is tried
  }
  return fail(ErrorKind::kUsage,
              "none of [cluster] ports = \"{}-{}\" can be listened on at {}; of the last: {}",
              ports.first, ports.last, address, problem);
}

}  // namespace

Result<ListenConfig> parse_listen_config(const std::string& config_json) {
  ListenConfig config;
  std::string ports;
  schema::JobReader job(config_json);
  job.read("cluster.hosts", config.hosts);
  job.read("cluster.interface", config.interface);
  job.read("cluster.ports", ports);
  ANTDT_RETURN_IF_ERROR(job.status());
  ANTDT_TRY(config.ports, parse_port_range(ports));
  return config;
}

Result<Listening> listen(transport::Context& context, const client::Environment& environment,
                         const ListenConfig& config, const transport::KeyPair& own) {
  if (!config.over_tcp()) {
    std::string path = process_socket(environment.socket, environment.job, environment.self);
    ANTDT_TRY(auto socket, transport::Socket::bind_ipc(context, path));
    return Listening{std::move(socket), std::move(path)};
  }
  ANTDT_TRY(const std::string address, own_address(config));
  ANTDT_TRY(auto socket, bind_one(context, environment, config, address, own));
  std::string endpoint = socket.endpoint();
  return Listening{std::move(socket), std::move(endpoint)};
}

Status check_run_directory(const std::string& run_dir, const std::string& job,
                           const std::string& host) {
  const Status claimed = claim_run_directory(run_dir, job, host);
  if (!claimed && claimed.error().kind == ErrorKind::kUsage) {
    // Another host may do: only where the job has made no step yet this ends it.
    return fail(ErrorKind::kRefused, "{}", claimed.error().message);
  }
  const std::string checkpoints = run_dir + "/checkpoints";
  const Status made = make_directories(checkpoints, 0700);
  if (made && access(checkpoints.c_str(), W_OK | X_OK) == 0) return {};
  return fail(ErrorKind::kUsage,
              "parameter servers on {} write their parts of checkpoints into {}, and cannot: {}. "
              "Make it possible there, or choose another path (antdt run --run-dir)",
              host, checkpoints, made ? strerror(errno) : made.error().message);
}

}  // namespace antdt::ps
