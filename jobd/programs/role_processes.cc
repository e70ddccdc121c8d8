#include "jobd/programs/role_processes.h"

#include <algorithm>

#include "core/role_protocol.h"

namespace antdt::jobd {
namespace {

constexpr char kWorker = 'w';
constexpr char kServer = 's';
constexpr std::uint64_t kMostWorkers = 1'000'000;  // on a host, if they request no resources

void add(std::vector<ctl::PlacedWorker>& placed, char role, const std::vector<std::size_t>& places,
         const std::vector<launcher::HostResources>& hosts) {
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    placed.push_back(
        {WorkerId{role, i}, hosts[places[i]].name, static_cast<std::uint32_t>(places[i])});
  }
}

}  // namespace

const launcher::RoleSection& section_of(const launcher::RolesSection& roles, char role) {
  return role == kServer ? roles.server : roles.worker;
}

Result<std::vector<ctl::PlacedWorker>> place_processes(
    const std::vector<launcher::HostResources>& hosts, const launcher::RolesSection& roles) {
  std::vector<ctl::PlacedWorker> placed;
  if (roles.worker.count == 0) return placed;
  ANTDT_TRY(const launcher::Placement places, launcher::place(hosts, roles));
  add(placed, kWorker, places.workers, hosts);
  add(placed, kServer, places.servers, hosts);
  return placed;
}

std::uint32_t servers_to_come(const launcher::RolesSection& roles,
                              const std::vector<ctl::WorkerProcess>& known, const std::string& host,
                              const std::vector<wire::RunningProcess>& running) {
  const auto is_server = [](const ctl::WorkerProcess& w) { return w.place.worker.role == kServer; };
  auto wanted = static_cast<std::int64_t>(roles.server.processes());
  if (std::ranges::any_of(known, is_server)) {
    wanted = std::ranges::count_if(known, [&](const ctl::WorkerProcess& w) {
      return is_server(w) && w.place.host == host && w.state != ctl::WorkerProcess::kRemoved;
    });
  }
  const auto there = std::ranges::count_if(
      running, [](const wire::RunningProcess& r) { return r.worker.role == kServer; });
  return static_cast<std::uint32_t>(std::max<std::int64_t>(0, wanted - there));
}

std::uint32_t room_on(const launcher::HostResources& free, const launcher::RolesSection& roles,
                      std::uint32_t running, std::uint32_t servers_to_come) {
  const launcher::HostResources left =
      launcher::without(free, servers_to_come, roles.server.resources);
  const std::uint64_t workers =
      std::min(kMostWorkers, launcher::fits(left, roles.worker.resources));
  return static_cast<std::uint32_t>(workers) + servers_to_come + running;
}

wire::StartProcess start_order(const launcher::JobConfig& config, char role,
                               const std::vector<wire::EnvVar>& extra) {
  const launcher::RoleSection& section = section_of(config.roles, role);
  wire::StartProcess start;
  start.role = role == kServer ? "server" : "worker";
  start.command = section.command;
  // A configuration file of NCCL on the host could say otherwise (docs/operations/nccl.md); it
  // overrides no variable.
  const bool uses_nccl = role != kServer && config.trainer.collective == "nccl";
  if (uses_nccl && !section.env.contains("NCCL_COMM_BLOCKING")) {
    start.env.push_back({"NCCL_COMM_BLOCKING", "0"});
  }
  for (const auto& [name, value] : section.env) start.env.push_back({name, value});
  start.env.insert(start.env.end(), extra.begin(), extra.end());
  start.env.push_back({"ANTDT_PROTOCOL", section.protocol});
  if (speaks(section.protocol, Protocol::kTorchrun) && section.trace)
    start.env.push_back({"ANTDT_TRACE", "1"});
  start.working_directory = config.job.directory;
  start.cpus = section.resources.cpus;
  start.memory_bytes = section.resources.memory_bytes;
  start.devices = section.resources.gpus;
  start.share_devices = section.resources.shared_gpus;
  start.bind_to_devices = section.resources.bind_to_gpus;
  start.log_bytes = config.logs.max_bytes;
  start.orphan_timeout_ms = static_cast<std::uint32_t>(config.failure.orphan_timeout.count());
  return start;
}

}  // namespace antdt::jobd
