#include "trainer/ps_server/listen.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/fs.h"
#include "core/net.h"
#include "core/permutation.h"
#include "core/runtime_dir.h"

namespace antdt::ps {
namespace {

using Json = nlohmann::json;

template <class T>
void read(const Json& section, const char* key, T& value) {
  const auto found = section.find(key);
  if (found != section.end()) found->get_to(value);
}

Result<std::string> own_address(const ListenConfig& config) {
  if (!config.interface.empty()) return interface_address(config.interface);
  std::string address = own_address_among(config.hosts);
  if (!address.empty()) return address;
  return fail(ErrorKind::kUsage,
              "none of [cluster] hosts is an address of this machine: set [cluster] interface to "
              "the network interface by which the other hosts reach this one");
}

// Servers of one host begin at different ports, so that they seldom meet.
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
    problem = bound.error().message;  // in use, mostly: the next may be free
  }
  return fail(ErrorKind::kUsage,
              "none of [cluster] ports = \"{}-{}\" can be listened on at {}; of the last: {}",
              ports.first, ports.last, address, problem);
}

}  // namespace

Result<ListenConfig> parse_listen_config(const std::string& config_json) {
  ListenConfig config;
  std::string ports;
  try {
    const Json json = Json::parse(config_json);
    const auto cluster = json.find("cluster");
    if (cluster == json.end()) return config;
    read(*cluster, "hosts", config.hosts);
    read(*cluster, "interface", config.interface);
    read(*cluster, "ports", ports);
  } catch (const Json::exception& e) {
    return fail(ErrorKind::kUsage, "cannot read the job's configuration: {}", e.what());
  }
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
  std::string seen;
  if (const auto text = read_file(run_dir + "/job.json")) {
    const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (json.is_object()) seen = json.value(Json::json_pointer("/job/id"), "");
  }
  if (seen == job && access(run_dir.c_str(), W_OK | X_OK) == 0) return {};
  return fail(ErrorKind::kUsage,
              "{} does not see the run directory {} (or may not write there), and parameter "
              "servers write checkpoints into it: put it where every host has it at the same path "
              "(antdt run --run-dir, with --state-dir on a local disk)",
              host, run_dir);
}

}  // namespace antdt::ps
