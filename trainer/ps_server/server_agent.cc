#include "trainer/ps_server/server_agent.h"

#include <unistd.h>

#include <cmath>
#include <utility>

#include "core/log/log.h"
#include "core/schema/job_reader.h"
#include "trainer/ps/placement.h"

namespace antdt::ps {
namespace {

Result<replica::Role> role_in(const wire::PsServe& message) {
  if (message.replica.empty()) return replica::Role::kAlone;
  if (message.replica == "primary") return replica::Role::kPrimary;
  if (message.replica == "backup") return replica::Role::kBackup;
  if (message.replica == "joining") return replica::Role::kJoining;
  return fail(ErrorKind::kUsage,
              "a server is primary, backup or joining, not '{}': install the same release of AntDT "
              "on every "
              "host",
              message.replica);
}

Result<Duration> hang_after_in(const std::string& config_json) {
  Duration hang_after{};
  schema::JobReader job(config_json);
  job.read("failure.hang_after", hang_after);
  ANTDT_RETURN_IF_ERROR(job.status());
  return hang_after;
}

}  // namespace

Result<std::unique_ptr<ServerAgent>> ServerAgent::start(EventLoop& loop,
                                                        transport::Context& context,
                                                        client::Environment environment) {
  ANTDT_TRY(auto own, transport::make_key_pair(fmt::format("{}", environment.self.worker)));
  ANTDT_TRY(auto agent, transport::Socket::connect_ipc(context, environment.socket));
  return std::unique_ptr<ServerAgent>(
      new ServerAgent(loop, context, std::move(environment), std::move(agent), std::move(own)));
}

ServerAgent::ServerAgent(EventLoop& loop, transport::Context& context,
                         client::Environment environment, transport::Socket agent,
                         transport::KeyPair own)
    : loop_(loop),
      context_(context),
      environment_(std::move(environment)),
      agent_(std::move(agent)),
      own_keys_(std::move(own)),
      begun_(loop.now()) {
  loop_.watch_socket(agent_, [this] { receive(); });
  say_again();
  pulse_ = loop_.call_after(kPulse, [this] { report(); });
}

ServerAgent::~ServerAgent() {
  loop_.cancel(again_);
  loop_.cancel(pulse_);
  server_.reset();  // before its socket
  loop_.unwatch_socket(agent_);
}

void ServerAgent::leave(int code) { end(code); }

void ServerAgent::end(Result<int> outcome) {
  if (!outcome_) outcome_ = std::move(outcome);
  loop_.stop();
}

// ---------------------------------------------------------------- what is said

template <class M>
void ServerAgent::say(const M& message, const wire::Envelope& about) {
  wire::Envelope envelope;
  envelope.job = environment_.job;
  envelope.worker = environment_.self.worker;
  envelope.attempt = environment_.self.attempt;
  envelope.generation = about.generation;
  envelope.seq = about.seq;
  // What finds no room is said again, or asked for again.
  std::ignore = agent_.send(wire::make_packet(envelope, message));
}

void ServerAgent::say_again() {
  if (!greeted_) {
    if (!welcome_ && loop_.now() >= begun_ + kGreeting) {
      return end(fail(ErrorKind::kUnreachable,
                      "no agent answered on {} within {:.0f} s: is antdtd running on this host, as "
                      "the same user?",
                      environment_.socket, to_seconds(kGreeting)));
    }
    say(wire::Hello{wire::kMinVersion, wire::kMaxVersion, "antdt-server"});
  } else if (generation_ == Generation{}) {
    wire::Join join;
    join.pid = static_cast<std::uint32_t>(getpid());
    join.collective = false;
    join.endpoint = own_->endpoint;
    join.key = own_keys_.public_z85;
    say(join);
  }
  loop_.cancel(again_);
  again_ = loop_.call_after(kAgain, [this] { say_again(); });
}

void ServerAgent::report() {
  pulse_ = loop_.call_after(kPulse, [this] { report(); });
  if (!greeted_) return;
  wire::Envelope group;
  group.generation = generation_;
  wire::Report report;
  report.step = Step{server_ ? server_->version() : 0};
  report.activity = "compute";
  report.throttle_permille = throttle_permille_;
  say(report, group);
  if (server_) say(server_->stats(), group);
}

// The loop's thread reads, and no timer of the loop fires: it is said from here.
void ServerAgent::report_reading(const std::string& path, std::uint64_t done, std::uint64_t total) {
  const MonoTime now = SteadyClock().now();
  if (done < total && now - reading_said_ < kPulse / 2) return;
  reading_said_ = now;
  wire::Envelope group;
  group.generation = generation_;
  wire::Report report;
  report.activity = "reconfigure";
  report.io = "reading the checkpoint";
  report.io_path = path;
  report.io_done_bytes = done;
  report.io_total_bytes = total;
  say(report, group);
}

// --------------------------------------------------------------- what is heard

void ServerAgent::receive() {
  while (const auto packet = agent_.receive()) {
    const auto envelope = wire::open_envelope(*packet);
    if (envelope) on_packet(*packet, *envelope);
    if (outcome_) return;
  }
}

void ServerAgent::on_packet(const wire::Packet& packet, const wire::Envelope& envelope) {
  const auto read = [&]<class M>(auto handle) {
    const auto message = wire::decode<M>(packet.body);
    if (message) return handle(*message);
    say(wire::Refused{"invalid", message.error().message}, envelope);
  };
  const std::string& kind = envelope.kind;
  if (kind == wire::WorkerWelcome::kKind) {
    read.operator()<wire::WorkerWelcome>([&](const auto& m) { on_welcome(m); });
  } else if (kind == wire::Refused::kKind) {
    read.operator()<wire::Refused>([&](const auto& m) { on_refused(m); });
  } else if (kind == wire::Leave::kKind) {
    read.operator()<wire::Leave>([&](const auto& m) { leave(static_cast<int>(m.code)); });
  } else if (kind == wire::PsServe::kKind) {
    read.operator()<wire::PsServe>([&](const auto& m) { on_serve(m, envelope); });
  } else if (kind == wire::Injected::kKind) {
    read.operator()<wire::Injected>([&](const auto& m) {
      if (m.number > injection_ordered_.number) injection_ordered_ = m;
    });
  } else if (kind == wire::PsCut::kKind) {
    read.operator()<wire::PsCut>([&](const auto& m) { on_cut(m, envelope); });
  }
  // What else workers are told is not for servers.
}

void ServerAgent::on_welcome(const wire::WorkerWelcome& welcome) {
  if (welcome.version < wire::kMinVersion || welcome.version > wire::kMaxVersion) {
    return end(fail(ErrorKind::kRefused,
                    "the agent chose protocol version {}, this server speaks {} to {}: install the "
                    "same release on both",
                    welcome.version, wire::kMinVersion, wire::kMaxVersion));
  }
  if (!own_) {
    Status ready = prepare_drill(welcome);
    if (ready) ready = open_end_point(welcome);
    if (!ready) return end(tl::unexpected<Error>(std::move(ready).error()));
  }
  welcome_ = welcome;
  if (!std::exchange(greeted_, true)) say_again();
}

// It is told to the agent with the next report.
Status ServerAgent::prepare_drill(const wire::WorkerWelcome& welcome) {
  const auto throttle = [this](double share) {
    throttle_permille_ = static_cast<std::uint32_t>(std::lround(share * 1000));
  };
  const Member self = environment_.self;
  auto injected = trainer::Injected::of_job(
      clock_, welcome.config_json, {self.worker, welcome.host, self.attempt},
      [this] { return injection_ordered_; }, throttle);
  if (!injected) return tl::unexpected<Error>(std::move(injected).error());
  injected_.emplace(std::move(*injected));
  return {};
}

Drill ServerAgent::drill() {
  injected_->training_began();
  return {[this](MonoTime began, std::uint64_t request) {
            injected_->after_compute(began, request, 1);
          },
          [link = injected_->link()](std::size_t bytes) { return link->delay(bytes); }};
}

Status ServerAgent::open_end_point(const wire::WorkerWelcome& welcome) {
  ANTDT_TRY(const ListenConfig config, parse_listen_config(welcome.config_json));
  if (config.over_tcp()) {
    ANTDT_RETURN_IF_ERROR(check_run_directory(welcome.run_dir, environment_.job, welcome.host));
    ANTDT_RETURN_IF_ERROR(context_.serve_authentication(
        loop_, [admitted = admitted_](const std::string& key) { return admitted->name_of(key); }));
  }
  ANTDT_TRY(own_, listen(context_, environment_, config, own_keys_));
  return {};
}

void ServerAgent::on_refused(const wire::Refused& refused) {
  if (refused.code == "busy" || refused.code == "full") return;  // said again by itself
  if (refused.code == "unknown" && welcome_) {                   // a new agent
    if (std::exchange(greeted_, false)) say_again();
    return;
  }
  if (refused.code == "stale") {
    log_info("{}", refused.reason);
    return end(0);
  }
  end(fail(ErrorKind::kRefused, "{}", refused.reason));
}

// -------------------------------------------------------------------- the group

void ServerAgent::on_serve(const wire::PsServe& message, const wire::Envelope& envelope) {
  if (envelope.generation < generation_ || envelope.generation == Generation{} || !welcome_) return;
  if (envelope.generation > generation_ || !server_) {
    if (const Status opened = open_group(message, envelope.generation); !opened) {
      return say(wire::Refused{"invalid", opened.error().message}, envelope);
    }
  }
  if (message.number >= serve_.number) serve_ = message;
  admitted_->admit(serve_);
  server_->serve(serve_, [this, envelope](const wire::PsServing& s) { say(s, envelope); });
  // It is no home, and its node hears all of this from its primary.
  if (!server_->speaks()) say(wire::PsServing{serve_.number, {}}, envelope);
}

Status ServerAgent::open_group(const wire::PsServe& message, Generation generation) {
  Group group;
  group.generation = generation;
  group.sockets = message.servers;
  ANTDT_TRY(group.consistency, parse_consistency(message.sync));
  ANTDT_TRY(group.role, role_in(message));
  group.view = message.view;
  const bool listed = group.role == replica::Role::kPrimary || group.role == replica::Role::kAlone;
  if (message.index >= message.servers.size() ||
      (message.servers[message.index] == own_->endpoint) != listed) {
    return fail(ErrorKind::kUsage, "{} is at {}, which is not end point {} of the {} of its group",
                environment_.self.worker, own_->endpoint, message.index, message.servers.size());
  }
  // Two that are one server begin alike: with what is copied.
  if (message.view == 0) {
    for (const wire::PsMember& m : message.workers) group.workers.push_back({m.worker, m.attempt});
    group.backups = message.backups;
  }
  if (group.role == replica::Role::kPrimary) {
    group.backup = message.other;
    group.backup_key = message.other_key;
  }
  group.restore = message.restore;
  group.version = message.version;
  group.reads = [this](const std::string& path, std::uint64_t done, std::uint64_t total) {
    report_reading(path, done, total);
  };
  group.root = welcome_->run_dir;
  ANTDT_TRY(group.hang_after, hang_after_in(welcome_->config_json));
  group.own = own_keys_;
  group.keys = server_keys(message);
  group.drill = drill();
  // The group before is over, whatever comes of this one.
  std::optional<Server::Rows> rows;
  if (server_ && message.keep) rows = server_->release();
  server_.reset();
  cutting_.clear();
  generation_ = generation;
  serve_ = {};
  ANTDT_TRY(server_,
            ServerLoop::open(loop_, context_, own_->socket, std::move(group), message.index));
  if (rows) server_->adopt(std::move(*rows));
  server_->set_broken_handler([this](const std::string& error) {
    end(fail(ErrorKind::kIo, "it cannot be the backup of its server: {}", error));
  });
  return {};
}

void ServerAgent::on_cut(const wire::PsCut& message, const wire::Envelope& envelope) {
  // Of a group that is over, or not here yet: said again if it is still wanted.
  if (envelope.generation != generation_ || !server_) return;
  if (!cutting_.insert(message.number).second) return;
  server_->cut(message, [this, envelope](const wire::PsSaved& saved) {
    cutting_.erase(saved.number);
    // What it holds in the end is what its last checkpoint has.
    if (server_) say(server_->stats(), envelope);
    say(saved, envelope);
  });
}

}  // namespace antdt::ps
