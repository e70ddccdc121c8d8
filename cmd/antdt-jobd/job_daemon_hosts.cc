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

// An agent that did not confirm a start is asked again; asking twice is safe.
constexpr Duration kStartRepeat = std::chrono::seconds(2);
constexpr Duration kConnectDeadline = std::chrono::seconds(10);
constexpr std::string_view kLocal = "local";

}  // namespace

Status JobDaemon::dial_agents(transport::Context& context) {
  links_.emplace(loop_, config_.job.id, shards_.incarnation(), kConnectDeadline,
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

std::string JobDaemon::host_name(const std::string& endpoint) const {
  const auto host = hosts_.find(endpoint);
  return host == hosts_.end() || host->second.host.empty() ? endpoint : host->second.host;
}

void JobDaemon::on_welcome(const std::string& endpoint, const wire::AgentWelcome& welcome) {
  hosts_[endpoint] = welcome;
  note("host", fmt::format("{} has {:g} cpus and {:.1f} GiB free", welcome.host, welcome.cpus,
                           static_cast<double>(welcome.memory_bytes) / (1ULL << 30)));
  if (!links_->all_welcome() || !lifecycle_.workers().empty()) return;
  if (lifecycle_.state() == ctl::JobState::kStarting) place_workers();
}

void JobDaemon::on_host_lost(const std::string& endpoint, const std::string& reason) {
  note("host-lost", fmt::format("{}: {}", host_name(endpoint), reason));
  step(ctl::job::Event(ctl::job::Failed{
      "host", 3, fmt::format("the agent {} cannot be reached: {}", endpoint, reason)}));
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
  if (!spec_.external) {
    const auto places = launcher::place(hosts, role.count, role.resources);
    if (!places) {
      step(ctl::job::Event(ctl::job::Failed{"host", 3, places.error().message}));
      return;
    }
    for (std::uint32_t i = 0; i < places->size(); ++i) {
      const std::size_t host = (*places)[i];
      placed.push_back({WorkerId{'w', i}, endpoints[host], static_cast<std::uint32_t>(host)});
    }
  }
  if (spec_.protocol != ctl::Protocol::kTorchrun) {
    step(ctl::job::Event(ctl::job::Placed{std::move(placed)}));
    return;
  }
  // The port must be free on the host of rank 0: its agent says which.
  waiting_for_port_ = std::move(placed);
  wire::Envelope envelope;
  envelope.job = config_.job.id;
  links_->send(waiting_for_port_.front().host, wire::make_packet(envelope, wire::ReservePort{}));
}

void JobDaemon::begin_torchrun(std::uint32_t master_port) {
  if (waiting_for_port_.empty()) return;
  const std::vector<ctl::PlacedWorker> placed = std::exchange(waiting_for_port_, {});
  const wire::AgentWelcome& first = hosts_.at(placed.front().host);
  const std::string address = config_.cluster.hosts.empty() ? "127.0.0.1" : first.address;
  const auto env = torchrun_environment(
      {config_.job.id, "worker", address, master_port, 0, 0, options_.run_dir}, placed);
  for (std::size_t i = 0; i < placed.size(); ++i) extra_env_[placed[i].worker] = env[i];
  step(ctl::job::Event(ctl::job::Placed{placed}));
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
  routes_[member.worker] = {endpoint, ""};
  start_asked_[member] = loop_.now();
  send_to(member, {}, start);
}

void JobDaemon::repeat_starts() {
  for (const ctl::WorkerProcess& w : lifecycle_.workers()) {
    if (w.state != ctl::WorkerProcess::kPlanned || w.asked_to_stop) continue;
    const auto asked = start_asked_.find(w.member());
    if (asked != start_asked_.end() && loop_.now() - asked->second < kStartRepeat) continue;
    request_start(w.member(), w.place.host);
  }
}

void JobDaemon::on_agent_message(const std::string& endpoint, const wire::Envelope& envelope,
                                 std::string_view body) {
  const Member member{envelope.worker, envelope.attempt};
  if (envelope.kind == wire::ReservedPort::kKind) {
    if (const auto port = wire::decode<wire::ReservedPort>(body)) begin_torchrun(port->port);
  } else if (envelope.kind == wire::ProcessStarted::kKind) {
    if (const auto started = wire::decode<wire::ProcessStarted>(body)) {
      step(ctl::job::Event(ctl::job::Started{member, started->pid}));
    }
  } else if (envelope.kind == wire::ProcessExited::kKind) {
    if (const auto exited = wire::decode<wire::ProcessExited>(body)) {
      send_to(member, {}, wire::ExitSeen{});
      on_exited(member, *exited);
    }
  } else if (envelope.kind == wire::Refused::kKind) {
    if (const auto refused = wire::decode<wire::Refused>(body)) {
      step(ctl::job::Event(ctl::job::StartRefused{member, refused->reason}));
    }
  } else if (envelope.attempt != Attempt{}) {
    on_worker_message(envelope, body, {endpoint, ""});
  }
}

void JobDaemon::on_exited(Member member, const wire::ProcessExited& exited) {
  WorkerReport& measured = measured_[member.worker];
  if (const auto asked = start_asked_.find(member); asked != start_asked_.end()) {
    measured.wall_seconds = to_seconds(loop_.now() - asked->second);
    // What the worker cannot see itself: being started, and its end.
    const wire::TimeAccount& t = measured.time;
    const double told = t.compute + t.data + t.collective_wait + t.shard_wait + t.reconfigure +
                        t.checkpoint + t.startup + t.other;
    measured.time.other += std::max(0.0, measured.wall_seconds - told);
  }
  step(ctl::job::Event(ctl::job::Exited{member, exited}));
  const bool failed = exited.code != 0 || exited.signal != 0 || !exited.error.empty();
  if (failed)
    step(ctl::MembershipEvent(
        ctl::MemberGone{member, fmt::format("{} on this generation ended", member.worker)}));
}

}  // namespace antdt::jobd
