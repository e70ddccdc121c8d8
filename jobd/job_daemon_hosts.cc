// Hosts: their agents, what is placed where, and starting it.
#include <algorithm>

#include "core/log/log.h"
#include "core/os/fs.h"
#include "core/wire/packet.h"
#include "jobd/job_daemon.h"
#include "jobd/programs/role_processes.h"
#include "jobd/programs/torchrun_env.h"
#include "launcher/config/cluster.h"

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
  if (!options_.agent_socket.empty()) {
    ANTDT_TRY(auto keeper, transport::Socket::connect_ipc(context, options_.agent_socket));
    keeper_.emplace(loop_, config_.job.id, journal_.incarnation(), std::move(keeper));
  }
  ANTDT_TRY(const launcher::ClusterKeys keys, launcher::load_cluster_keys(config_.cluster));
  for (std::size_t i = 0; i < config_.cluster.hosts.size(); ++i) {
    const std::string& host = config_.cluster.hosts[i];
    ANTDT_TRY(auto socket,
              transport::Socket::connect_tcp(context, host, keys.job, keys.agents[i].z85));
    links_->add(host, std::move(socket));
    copies_->add(context, {host, keys.job, keys.agents[i].z85});
  }
  return {};
}

// With room for what is free there and for what runs there for this job.
ctl::HostState JobDaemon::host_state(const std::string& endpoint,
                                     const wire::AgentWelcome& welcome) const {
  const std::uint32_t servers =
      servers_to_come(config_.roles, machine_.lifecycle().workers(), endpoint, welcome.running);
  ctl::HostState host;
  host.host = endpoint;
  host.name = welcome.host;
  host.room = room_on({endpoint, welcome.cpus, welcome.memory_bytes, welcome.devices},
                      config_.roles, static_cast<std::uint32_t>(welcome.running.size()), servers);
  const auto& hosts = config_.cluster.hosts;
  host.order = static_cast<std::uint32_t>(std::ranges::find(hosts, endpoint) - hosts.begin());
  return host;
}

void JobDaemon::on_welcome(const std::string& endpoint, const wire::AgentWelcome& welcome) {
  hosts_[endpoint] = welcome;
  copies_->host_up(endpoint);
  feed(ctl::job::HostWelcomed{host_state(endpoint, welcome), welcome.running});
  if (!links_->all_welcome() || !machine_.lifecycle().workers().empty()) return;
  if (machine_.lifecycle().state() == ctl::JobState::kStarting) place_workers();
}

void JobDaemon::on_host_lost(const std::string& endpoint, const std::string& reason) {
  copies_->host_lost(endpoint);
  feed(ctl::lifecycle::HostLost{endpoint, reason});
}

void JobDaemon::place_workers() {
  std::vector<launcher::HostResources> hosts;
  std::vector<std::string> endpoints = config_.cluster.hosts;
  if (endpoints.empty()) endpoints.emplace_back(kLocal);
  for (const std::string& endpoint : endpoints) {
    const wire::AgentWelcome& w = hosts_.at(endpoint);
    hosts.push_back({endpoint, w.cpus, w.memory_bytes, w.devices});
  }
  auto placed = place_processes(hosts, config_.roles);
  if (!placed) return feed(ctl::lifecycle::JobFailed{"host", 3, placed.error().message});
  feed(ctl::lifecycle::WorkersPlaced{std::move(*placed)});
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
  const auto env = torchrun_environment(
      {config_.job.id, "worker", address, master_port, restarts, most, options_.run_dir}, placed);
  for (std::size_t i = 0; i < placed.size(); ++i) extra_env_[placed[i].worker] = env[i];
  feed(ctl::lifecycle::GangPrepared{});
}

void JobDaemon::request_start(Member member, const std::string& endpoint) {
  const auto extra = extra_env_.find(member.worker);
  wire::StartProcess start =
      start_order(config_, member.worker.role,
                  extra == extra_env_.end() ? std::vector<wire::EnvVar>{} : extra->second);
  start.run_dir = options_.run_dir;
  start.config_json = config_json_;
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
  std::erase_if(
      asked_, [this](const auto& asked) { return !machine_.lifecycle().is_current(asked.first); });
  for (const ctl::WorkerProcess& w : machine_.lifecycle().workers()) {
    if (!w.running()) continue;
    const auto asked = asked_.find(w.member());
    if (asked != asked_.end() && loop_.now() - asked->second < kRepeat) continue;
    const bool must_end = w.is_to_be_killed(machine_.lifecycle().seconds());
    if (must_end) {
      perform(ctl::lifecycle::StopWorker{w.member(), w.place.host, Duration::zero()});
    } else if (w.state == ctl::WorkerProcess::kPlanned && !w.asked_to_stop() &&
               waiting_for_port_.empty()) {
      request_start(w.member(), w.place.host);
    }
  }
  if (!waiting_for_port_.empty()) perform(ctl::lifecycle::PrepareGang{waiting_for_port_});
}

}  // namespace antdt::jobd
