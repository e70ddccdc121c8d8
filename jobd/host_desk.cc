#include "jobd/host_desk.h"

#include <algorithm>
#include <utility>

#include "core/overloaded.h"
#include "core/utf8.h"
#include "jobd/programs/role_processes.h"
#include "jobd/programs/torchrun_env.h"
#include "jobd/shell.h"
#include "launcher/config/cluster.h"

namespace antdt::jobd {
namespace {

constexpr std::string_view kLocal = "local";
constexpr std::size_t kMostOfADrain = 800;  // of what an agent says about a drain or a device

}  // namespace

Status HostDesk::dial_agents(transport::Context& context) {
  const launcher::JobConfig& config = shell_.config;
  const Incarnation incarnation = shell_.turns.incarnation();
  shell_.links.emplace(
      shell_.loop, config.job.id, incarnation, config.failure.host_lost_after,
      AgentLinks::Handlers{[this](const auto& e, const auto& w) { on_welcome(e, w); },
                           [this](const auto& e, const auto& r) { on_lost(e, r); },
                           [this](const auto& e, const auto& env, auto b) {
                             shell_.inbox.on_agent_message(e, env, b);
                           }});
  if (config.cluster.hosts.empty()) {
    ANTDT_TRY(auto socket, transport::Socket::connect_ipc(context, shell_.options.agent_socket));
    shell_.links->add(std::string(kLocal), std::move(socket));
    return {};
  }
  if (!shell_.options.agent_socket.empty()) {
    ANTDT_TRY(auto keeper, transport::Socket::connect_ipc(context, shell_.options.agent_socket));
    shell_.keeper.emplace(shell_.loop, config.job.id, incarnation, std::move(keeper));
  }
  ANTDT_TRY(const launcher::ClusterKeys keys, launcher::load_cluster_keys(config.cluster));
  for (std::size_t i = 0; i < config.cluster.hosts.size(); ++i) {
    const std::string& host = config.cluster.hosts[i];
    ANTDT_TRY(auto socket,
              transport::Socket::connect_tcp(context, host, keys.job, keys.agents[i].z85));
    shell_.links->add(host, std::move(socket));
    shell_.checkpoints.copies().add(context, {host, keys.job, keys.agents[i].z85});
  }
  return {};
}

// The room is what is free on the host, plus what runs there for this job.
ctl::HostState HostDesk::state_of(const std::string& endpoint,
                                  const wire::AgentWelcome& welcome) const {
  const launcher::JobConfig& config = shell_.config;
  const std::uint32_t servers = servers_to_come(config.roles, shell_.machine.lifecycle().workers(),
                                                endpoint, welcome.running);
  ctl::HostState host;
  host.host = endpoint;
  host.name = welcome.host;
  host.drained = why_drained(endpoint, welcome);
  host.room = room_on(launcher::resources_of(endpoint, welcome), config.roles,
                      static_cast<std::uint32_t>(welcome.running.size()), servers);
  const auto& hosts = config.cluster.hosts;
  host.order = static_cast<std::uint32_t>(std::ranges::find(hosts, endpoint) - hosts.begin());
  return host;
}

void HostDesk::on_welcome(const std::string& endpoint, wire::AgentWelcome welcome) {
  const auto& listed = shell_.config.cluster.hosts;
  shell_.standbys.on_welcome(
      endpoint, static_cast<std::uint32_t>(std::ranges::find(listed, endpoint) - listed.begin()),
      welcome);
  tell_trouble(hosts_[endpoint].host_devices, welcome.host_devices);
  hosts_[endpoint] = welcome;
  shell_.checkpoints.copies().host_up(endpoint);
  shell_.feed(ctl::job::HostWelcomed{state_of(endpoint, welcome), welcome.running});
  place_if_due();
}

// An agent that began just now may not know its devices yet.
void HostDesk::place_if_due() {
  const ctl::Lifecycle& life = shell_.machine.lifecycle();
  if (!shell_.links->contacts().all_welcome() || !life.workers().empty()) return;
  const launcher::RolesSection& roles = shell_.config.roles;
  const bool gpus = roles.worker.resources.gpus > 0 || roles.server.resources.gpus > 0;
  if (gpus && std::ranges::any_of(
                  hosts_, [](const auto& entry) { return entry.second.host_devices.pending; })) {
    return;
  }
  if (life.state() == ctl::JobState::kStarting) place_workers();
}

std::string HostDesk::why_drained(const std::string& endpoint,
                                  const wire::AgentWelcome& welcome) const {
  if (welcome.drain) return valid_utf8(wire::to_text(*welcome.drain), kMostOfADrain);
  const auto found = not_ours_.find(endpoint);
  return found == not_ours_.end() ? "" : found->second;
}

void HostDesk::on_run_directory(const std::string& endpoint, const std::string& trouble) {
  if (trouble.empty()) {
    if (not_ours_.erase(endpoint) == 0) return;
  } else {
    not_ours_[endpoint] = "because " + valid_utf8(trouble, kMostOfADrain);
  }
  const auto host = hosts_.find(endpoint);
  if (host == hosts_.end()) return;
  shell_.feed(ctl::lifecycle::HostDrained{endpoint, why_drained(endpoint, host->second)});
}

void HostDesk::on_drain(const std::string& endpoint, const wire::HostDrain& drain) {
  const auto host = hosts_.find(endpoint);
  if (host == hosts_.end()) return;  // its welcome says the same
  host->second.drain = drain.drain;
  shell_.feed(ctl::lifecycle::HostDrained{endpoint, why_drained(endpoint, host->second)});
}

void HostDesk::on_devices(const std::string& endpoint, const wire::HostDevices& devices) {
  const auto host = hosts_.find(endpoint);
  if (host == hosts_.end()) return;  // its welcome says the same
  tell_trouble(host->second.host_devices, devices);
  host->second.host_devices = devices;
  host->second.devices = devices.free;
  place_if_due();
}

void HostDesk::tell_trouble(const wire::HostDevices& before, const wire::HostDevices& now) {
  if (now.pending || before.trouble == now.trouble) return;
  if (!now.trouble.empty()) {
    shell_.note("device", fmt::format("{} leases no GPUs now: {}", now.host,
                                      valid_utf8(now.trouble, kMostOfADrain)));
  } else if (!before.pending) {
    shell_.note("device", fmt::format("{} leases its GPUs again", now.host));
  }
}

void HostDesk::on_device_trouble(const std::string& endpoint, const wire::DeviceTrouble& trouble) {
  const auto host = hosts_.find(endpoint);
  shell_.note("device", fmt::format("a device of {} on {} is not healthy: {}", trouble.worker,
                                    host == hosts_.end() ? endpoint : host->second.host,
                                    valid_utf8(trouble.problem, kMostOfADrain)));
}

void HostDesk::add_devices(ctl::JobReport& report) const {
  for (const auto& [endpoint, welcome] : hosts_) {
    for (ctl::HostReport& host : report.hosts) {
      if (host.name == welcome.host || host.name == endpoint) host.devices = welcome.host_devices;
    }
  }
}

void HostDesk::on_lost(const std::string& endpoint, const std::string& reason) {
  shell_.standbys.on_lost(endpoint);
  shell_.checkpoints.copies().host_lost(endpoint);
  shell_.feed(ctl::lifecycle::HostLost{endpoint, reason});
}

void HostDesk::look_at_silence() {
  for (const std::string& host : shell_.links->contacts().silent(shell_.loop.now())) {
    shell_.feed(ctl::job::HostFellSilent{host});
  }
}

void HostDesk::place_workers() {
  std::vector<launcher::HostResources> hosts;
  std::vector<std::string> endpoints = shell_.config.cluster.hosts;
  if (endpoints.empty()) endpoints.emplace_back(kLocal);
  std::string drained;
  for (const std::string& endpoint : endpoints) {
    const wire::AgentWelcome& w = hosts_.at(endpoint);
    if (const std::string why = why_drained(endpoint, w); !why.empty()) {
      drained += fmt::format("; {} is drained {}", w.host, why);
      continue;
    }
    hosts.push_back(launcher::resources_of(endpoint, w));
  }
  auto placed = place_processes(hosts, shell_.config.roles);
  if (!placed) {
    return shell_.feed(
        ctl::lifecycle::JobFailed{ctl::ExitClass::kHost, 3, placed.error().message + drained});
  }
  shell_.feed(ctl::lifecycle::WorkersPlaced{std::move(*placed)});
}

void HostDesk::prepare(const ctl::lifecycle::PrepareGang& o) {
  waiting_for_port_ = o.workers;
  wire::Envelope envelope;
  envelope.job = shell_.config.job.id;
  shell_.outbox.add(
      {{o.workers.front().host, ""}, wire::make_packet(envelope, wire::ReservePort{})});
}

void HostDesk::on_port(std::uint32_t master_port) {
  if (waiting_for_port_.empty()) return;
  const launcher::JobConfig& config = shell_.config;
  const std::vector<ctl::PlacedWorker> placed = std::exchange(waiting_for_port_, {});
  const wire::AgentWelcome& first = hosts_.at(placed.front().host);
  const std::string address = config.cluster.hosts.empty() ? "127.0.0.1" : first.address;
  const auto worker = shell_.machine.lifecycle().find(placed.front().worker);
  const std::uint32_t restarts = worker == nullptr ? 0 : worker->attempt.value - 1;
  const auto budgets = config.failure.budgets.find("program");
  const std::uint32_t most = budgets == config.failure.budgets.end() ? 0 : budgets->second;
  const auto env = torchrun_environment(
      {config.job.id, "worker", address, master_port, restarts, most, shell_.options.run_dir},
      placed);
  for (std::size_t i = 0; i < placed.size(); ++i) extra_env_[placed[i].worker] = env[i];
  shell_.feed(ctl::lifecycle::GangPrepared{});
}

void HostDesk::start(const ctl::lifecycle::StartWorker& o) {
  const auto extra = extra_env_.find(o.member.worker);
  wire::StartProcess start =
      start_order(shell_.config, o.member.worker.role,
                  extra == extra_env_.end() ? std::vector<wire::EnvVar>{} : extra->second);
  if (extra != extra_env_.end()) set_local_rank(extra->second, start);
  start.run_dir = shell_.options.run_dir;
  start.config_json = shell_.config_json;
  ctl::MonitorConfig windows;
  windows.transient_window = shell_.config.control.transient_window;
  start.report_ms = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(ctl::report_interval(windows)).count());
  const Route route{o.host, ""};
  shell_.outbox.reached_by(o.member.worker, route);
  requests_.asked(o.member, shell_.loop.now());
  shell_.outbox.send(route, o.member, {}, start);
}

void HostDesk::stop(const ctl::lifecycle::StopWorker& o) {
  const auto grace = std::chrono::ceil<std::chrono::milliseconds>(o.grace);
  requests_.asked(o.member, shell_.loop.now());
  shell_.outbox.send({o.host, ""}, o.member, {},
                     wire::StopProcess{static_cast<std::uint32_t>(grace.count())});
}

void HostDesk::repeat_requests() {
  const bool knows_port = waiting_for_port_.empty();
  const Overloaded ask{[&](const ctl::lifecycle::StopWorker& o) { stop(o); },
                       [&](const ctl::lifecycle::StartWorker& o) {
                         if (knows_port) start(o);
                       }};
  for (const auto& request : requests_.due(shell_.machine.lifecycle(), shell_.loop.now())) {
    std::visit(ask, request);
  }
  if (!knows_port) prepare({waiting_for_port_});
}

}  // namespace antdt::jobd
