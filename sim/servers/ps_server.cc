#include "sim/servers/ps_server.h"

#include "sim/checks.h"
#include "sim/files.h"
#include "sim/network.h"
#include "sim/options.h"
#include "sim/surroundings.h"

namespace antdt::sim {

using std::chrono::milliseconds;
namespace process = ps::process;

void PsServer::start() {
  later({}, [this] { tick(); });
  later(ps::ServerProcess::kPulse, [this] { pulse(); });
}

void PsServer::terminate() {
  later({}, [this] { feed(process::StopAsked{}); });
}

std::string PsServer::doing() const {
  return fmt::format("{}.{} on {}{}: generation {}, serve {}, version {}", member_.worker,
                     member_.attempt, host_, standing(), machine_.generation(),
                     machine_.order().number, server_ ? server_->version() : 0);
}

void PsServer::tick() {
  later(clock_.real(ps::ServerProcess::kAgain), [this] { tick(); });
  feed(process::TimePassed{});
}

void PsServer::pulse() {
  later(clock_.real(ps::ServerProcess::kPulse), [this] { pulse(); });
  feed(process::PulsePassed{server_ ? server_->version() : 0});
}

void PsServer::feed(process::Input input) {
  inputs_.push_back(std::move(input));
  if (std::exchange(feeding_, true)) return;
  process::Effects effects;
  while (!inputs_.empty() && alive()) {
    const process::Input next = std::move(inputs_.front());
    inputs_.pop_front();
    effects.clear();
    machine_.step(next, clock_.now(), effects);
    for (const process::Effect& effect : effects) {
      std::visit([this](const auto& e) { perform(e); }, effect);
    }
  }
  feeding_ = false;
}

// ---------------------------------------------------------------- what is said

void PsServer::say(decltype(Said::body) body, Generation generation) {
  Program::say({generation, 0, std::move(body)});
}

void PsServer::perform(const process::SayHello&) {
  say(wire::Hello{wire::kMinVersion, wire::kMaxVersion, "antdt-server"});
}

void PsServer::perform(const process::SayJoin& effect) {
  wire::Join join = effect.join;
  join.pid = pid_;
  say(ctl::job::WorkerBody(join));
}

void PsServer::perform(const process::SayReport& effect) { say(effect.report, effect.generation); }

void PsServer::perform(const process::AnswerGroupOrder& effect) {
  say(ctl::job::WorkerBody(effect.serving), effect.generation);
}

void PsServer::perform(const process::AnswerCutOrder& effect) {
  say(ctl::job::WorkerBody(effect.saved), effect.generation);
}

void PsServer::perform(const process::RefuseGroupOrder& effect) {
  world_.violate("a server can serve what it is told", effect.refused.reason + "; " + doing());
}

// --------------------------------------------------------------- what is heard

void PsServer::receive(Told message) {
  later({}, [this, message = std::move(message)] { hear(message); });
}

void PsServer::hear(const Told& message) {
  if (const auto* serve = std::get_if<wire::PsServe>(&message.body)) {
    return feed(process::GroupOrderHeard{message.generation, *serve});
  }
  if (const auto* cut = std::get_if<wire::PsCut>(&message.body)) {
    return feed(process::CutOrderHeard{message.generation, *cut});
  }
  const auto& body = std::get<client::Inbound>(message.body);
  if (const auto* welcome = std::get_if<wire::WorkerWelcome>(&body)) {
    feed(process::WelcomeHeard{welcome->version});
  } else if (const auto* refused = std::get_if<wire::Refused>(&body)) {
    feed(process::RefusalHeard{*refused});
  } else if (const auto* leave = std::get_if<wire::Leave>(&body)) {
    feed(process::LeaveHeard{static_cast<int>(leave->code)});
  }
}

void PsServer::perform(const process::GiveUpProcess& effect) {
  world_.say("{}.{} gives up: {}", member_.worker, member_.attempt, effect.error.message);
  exit(1);
}

// -------------------------------------------------------------------- the group

void PsServer::perform(const process::OpenEndPoint&) {
  // The next attempt listens there as well, with another key.
  const std::string endpoint = fmt::format("{}@{}", member_.worker, host_);
  const std::string key = fmt::format("{}", member_.attempt);
  address_ = address_of(endpoint, key);
  feed(process::EndPointOpened{endpoint, key});
}

void PsServer::perform(const process::BeginGroup& effect) {
  const ps::node::Start& start = effect.start.node;
  std::optional<ps::Server::Rows> rows;
  if (server_ && effect.keep) rows = server_->release();
  server_.reset();
  seen_ = {};
  around_.checks.group_began(start.generation, around_.files.model_in(start.restore));
  server_ = std::make_unique<PsServerLoop>(outside_of(start.generation), effect.start);
  if (rows) server_->adopt(std::move(*rows));
  for (PsPacket& packet : std::exchange(unread_, {})) server_->asked(std::move(packet));
}

void PsServer::perform(const process::OrderGroup& effect) { server_->serve(effect.serve); }

void PsServer::perform(const process::OrderSlices& effect) { server_->cut(effect.cut); }

PsServerLoop::Outside PsServer::outside_of(Generation generation) {
  return {[this](Duration delay, World::Action action) {
            later(clock_.real(delay), std::move(action));
          },
          [this](const std::string& address, PsPacket packet) {
            if (may_send()) around_.network.ask(*this, address, std::move(packet));
          },
          [this](PsAnswer answer) {
            if (may_send()) around_.network.answer(*this, std::move(answer));
          },
          [this](const std::string& directory, const PsSlices& slices) {
            return around_.files.write(directory, slices);
          },
          [this](const std::string& directory) { return around_.files.read_slices(directory); },
          [this] { return around_.files.away; },
          [this, generation](std::uint32_t home, const wire::PsDecision& d) {
            around_.checks.decided(generation, home, d);
          },
          [this] { return around_.network.new_socket(member_); },
          [this] { return world_.rng().time(milliseconds(1), milliseconds(600)); },
          [this] { return world_.rng().time({}, milliseconds(20)); },
          [this] {
            constexpr double kLost = 0.002;
            return around_.faults.worker_kill > 0 && world_.rng().chance(kLost);
          },
          [this](const wire::PsServing& serving) { feed(process::OrderTaken{serving}); },
          [this](const wire::PsSaved& saved) { feed(process::CutTaken{saved}); },
          [this](const ps::replica::BreakUp& broken) {
            later({}, [this, broken] { feed(process::BackupBroken{broken.error, broken.unread}); });
          },
          [this, generation](const ps::LinkedServer& server) {
            if (server.replica().is_ahead()) return;  // of what anyone may know
            around_.checks.stepped(generation, *this, server.node(), seen_);
          },
          sabotage_};
}

void PsServer::asked(PsPacket packet) {
  later({}, [this, packet = std::move(packet)]() mutable {
    server_ ? server_->asked(std::move(packet)) : unread_.push_back(std::move(packet));
  });
}

void PsServer::answered(PsAnswer answer) {
  later({}, [this, answer = std::move(answer)] {
    if (server_) server_->answered(answer);
  });
}

}  // namespace antdt::sim
