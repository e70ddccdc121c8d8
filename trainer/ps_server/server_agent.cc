#include "trainer/ps_server/server_agent.h"

#include <unistd.h>

#include <utility>

#include "core/log.h"
#include "core/runtime_dir.h"
#include "trainer/ps_link/placement.h"

namespace antdt::ps {
namespace {

std::string endpoint_of(const client::Environment& environment) {
  return process_socket(environment.socket, environment.job, environment.self);
}

}  // namespace

Result<std::unique_ptr<ServerAgent>> ServerAgent::start(EventLoop& loop,
                                                        transport::Context& context,
                                                        client::Environment environment) {
  ANTDT_TRY(auto own, transport::Socket::bind_ipc(context, endpoint_of(environment)));
  ANTDT_TRY(auto agent, transport::Socket::connect_ipc(context, environment.socket));
  return std::unique_ptr<ServerAgent>(
      new ServerAgent(loop, context, std::move(environment), std::move(agent), std::move(own)));
}

ServerAgent::ServerAgent(EventLoop& loop, transport::Context& context,
                         client::Environment environment, transport::Socket agent,
                         transport::Socket own)
    : loop_(loop),
      context_(context),
      environment_(std::move(environment)),
      agent_(std::move(agent)),
      own_(std::move(own)),
      endpoint_(endpoint_of(environment_)),
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
    join.endpoint = endpoint_;
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
  say(report, group);
  if (server_) say(server_->stats(), group);
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
  welcome_ = welcome;
  if (!std::exchange(greeted_, true)) say_again();
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
  if (message.number > number_) {
    number_ = message.number;
    server_->serve(message);
  }
  say(wire::PsServing{number_, server_->left(message.leaving)}, envelope);
}

Status ServerAgent::open_group(const wire::PsServe& message, Generation generation) {
  Group group;
  group.generation = generation;
  group.sockets = message.servers;
  ANTDT_TRY(group.consistency, parse_consistency(message.sync));
  if (message.index >= message.servers.size() || message.servers[message.index] != endpoint_) {
    return fail(ErrorKind::kUsage, "{} is at {}, which is not end point {} of the {} of its group",
                environment_.self.worker, endpoint_, message.index, message.servers.size());
  }
  for (const wire::PsMember& m : message.workers) group.workers.push_back({m.worker, m.attempt});
  group.backups = message.backups;
  group.restore = message.restore;
  group.version = message.version;
  group.root = welcome_->run_dir;
  // The group before is over, whatever comes of this one.
  server_.reset();
  cutting_.clear();
  generation_ = generation;
  number_ = 0;
  ANTDT_TRY(server_, ServerLoop::open(loop_, context_, own_, std::move(group), message.index));
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
