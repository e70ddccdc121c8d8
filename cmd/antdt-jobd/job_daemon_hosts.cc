// Hosts: their agents, what is placed where, and starting it.
#include <algorithm>

#include "cmd/antdt-jobd/job_daemon.h"
#include "cmd/antdt-jobd/torchrun_env.h"
#include "core/fs.h"
#include "core/log.h"
#include "core/wire/packet.h"
#include "launcher/cluster.h"
#include "launcher/placement.h"

namespace antdt::jobd {
namespace {

constexpr Duration kRepeat = std::chrono::seconds(2);
constexpr Duration kConnectDeadline = std::chrono::seconds(10);
constexpr std::string_view kLocal = "local";

}  // namespace

Status JobDaemon::dial_agents(transport::Context& context) {
  links_.emplace(loop_, config_.job.id, journal_.incarnation(), kConnectDeadline,
                 config_.failure.host_lost_after,
                 AgentLinks::Handlers{[this](const auto& e, const auto& w) { on_welcome(e, w); },
                                      [this](const auto& e, const auto& r) { on_host_lost(e, r); },
                                      [this](const auto& e, const auto& env, auto b) {
                                        on_agent_message(e, env, b);
                                      }});
  if (config_.cluster.hosts.empty()) {
    ANTDT_TRY(auto socket, transport::Socket::connect_ipc(context, options_.agent_socket));
    links_->add(std::string(kLocal), std::move(socket));
    return {};
  }
  ANTDT_TRY(const launcher::ClusterKeys keys, launcher::load_cluster_keys(config_.cluster));
  for (std::size_t i = 0; i < config_.cluster.hosts.size(); ++i) {
    const std::string& host = config_.cluster.hosts[i];
    ANTDT_TRY(auto socket,
              transport::Socket::connect_tcp(context, host, keys.job, keys.agents[i].z85));
    links_->add(host, std::move(socket));
  }
  return {};
}

// With room for what is free there and for what runs there for this job.
ctl::HostState JobDaemon::host_state(const std::string& endpoint,
                                     const wire::AgentWelcome& welcome) const {
  const launcher::Resources& each = config_.roles.worker.resources;
  double fit = 1e6;
  if (each.cpus > 0) fit = std::min(fit, welcome.cpus / each.cpus + 1e-9);
  if (each.memory_bytes > 0) {
    fit = std::min(fit, static_cast<double>(welcome.memory_bytes) /
                            static_cast<double>(each.memory_bytes));
  }
  if (each.devices > 0) fit = std::min(fit, static_cast<double>(welcome.devices / each.devices));
  ctl::HostState host;
  host.host = endpoint;
  host.name = welcome.host;
  host.room = static_cast<std::uint32_t>(std::max(0.0, fit)) +
              static_cast<std::uint32_t>(welcome.running.size());
  const auto& hosts = config_.cluster.hosts;
  host.order = static_cast<std::uint32_t>(std::ranges::find(hosts, endpoint) - hosts.begin());
  return host;
}

void JobDaemon::on_welcome(const std::string& endpoint, const wire::AgentWelcome& welcome) {
  hosts_[endpoint] = welcome;
  feed(ctl::in::HostWelcome{host_state(endpoint, welcome), welcome.running});
  if (!links_->all_welcome() || !machine_.lifecycle().workers().empty()) return;
  if (machine_.lifecycle().state() == ctl::JobState::kStarting) place_workers();
}

void JobDaemon::on_host_lost(const std::string& endpoint, const std::string& reason) {
  feed(ctl::job::HostLost{endpoint, reason});
}

void JobDaemon::place_workers() {
  std::vector<launcher::HostResources> hosts;
  std::vector<std::string> endpoints = config_.cluster.hosts;
  if (endpoints.empty()) endpoints.emplace_back(kLocal);
  for (const std::string& endpoint : endpoints) {
    const wire::AgentWelcome& w = hosts_.at(endpoint);
    hosts.push_back({endpoint, w.cpus, w.memory_bytes, w.devices});
  }
  const launcher::RoleSection& role = config_.roles.worker;
  std::vector<ctl::PlacedWorker> placed;
  if (role.count > 0) {
    const auto places = launcher::place(hosts, role);
    if (!places) return feed(ctl::job::Failed{"host", 3, places.error().message});
    for (std::uint32_t i = 0; i < places->size(); ++i) {
      const std::size_t host = (*places)[i];
      placed.push_back({WorkerId{'w', i}, endpoints[host], static_cast<std::uint32_t>(host)});
    }
  }
  feed(ctl::job::Placed{std::move(placed)});
}

void JobDaemon::on_port(std::uint32_t master_port) {
  if (waiting_for_port_.empty()) return;
  const std::vector<ctl::PlacedWorker> placed = std::exchange(waiting_for_port_, {});
  const wire::AgentWelcome& first = hosts_.at(placed.front().host);
  const std::string address = config_.cluster.hosts.empty() ? "127.0.0.1" : first.address;
  const auto worker = machine_.lifecycle().find(placed.front().worker);
  const std::uint32_t restarts = worker == nullptr ? 0 : worker->attempt.value - 1;
  const auto budgets = config_.failure.budgets.find("program");
  const std::uint32_t most = budgets == config_.failure.budgets.end() ? 0 : budgets->second;
  const auto env = torchrun_environment({config_.job.id, "worker", address, master_port, restarts,
                                         most, options_.run_dir},
                                        placed);
  for (std::size_t i = 0; i < placed.size(); ++i) extra_env_[placed[i].worker] = env[i];
  feed(ctl::job::GangReady{});
}

void JobDaemon::request_start(Member member, const std::string& endpoint) {
  const launcher::RoleSection& role = config_.roles.worker;
  wire::StartProcess start;
  start.role = "worker";
  start.command = role.command;
  for (const auto& [name, value] : role.env) start.env.push_back({name, value});
  if (const auto extra = extra_env_.find(member.worker); extra != extra_env_.end()) {
    start.env.insert(start.env.end(), extra->second.begin(), extra->second.end());
  }
  start.env.push_back({"ANTDT_PROTOCOL", role.protocol});
  start.working_directory = config_.job.directory;
  start.run_dir = options_.run_dir;
  start.config_json = config_json_;
  start.cpus = role.resources.cpus;
  start.memory_bytes = role.resources.memory_bytes;
  start.devices = role.resources.devices;
  start.log_bytes = config_.logs.max_bytes;
  start.orphan_timeout_ms = static_cast<std::uint32_t>(config_.failure.orphan_timeout.count());
  ctl::MonitorConfig windows;
  windows.transient_window = config_.control.transient_window;
  start.report_ms = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(ctl::report_interval(windows)).count());
  const Route route{endpoint, ""};
  routes_[member.worker] = route;
  asked_[member] = loop_.now();
  send(route, member, {}, start);
}

// What an agent has not confirmed is asked again; asking twice is safe.
void JobDaemon::repeat_requests() {
  for (const ctl::WorkerProcess& w : machine_.lifecycle().workers()) {
    if (!w.running()) continue;
    const auto asked = asked_.find(w.member());
    if (asked != asked_.end() && loop_.now() - asked->second < kRepeat) continue;
    const bool must_end =
        w.asked_to_stop && machine_.lifecycle().seconds() >= w.killed_from_s;
    if (must_end) {
      perform(ctl::job::StopWorker{w.member(), w.place.host, Duration::zero()});
    } else if (w.state == ctl::WorkerProcess::kPlanned && !w.asked_to_stop &&
               waiting_for_port_.empty()) {
      request_start(w.member(), w.place.host);
    }
  }
  if (!waiting_for_port_.empty()) perform(ctl::job::PrepareGang{waiting_for_port_});
}

}  // namespace antdt::jobd
