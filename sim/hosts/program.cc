#include "sim/hosts/program.h"

#include <csignal>

#include "sim/checks.h"
#include "sim/daemon/daemons.h"
#include "sim/hosts/hosts.h"
#include "sim/surroundings.h"

namespace antdt::sim {
namespace {

using std::chrono::microseconds;

constexpr int kGivesUp = 1;  // the exit status of a process that gives up, also if it is refused

Said said_by(client::SendMessage message) {
  Said said{message.generation, message.seq, {}};
  std::visit(
      [&](auto& body) {
        using Body = std::decay_t<decltype(body)>;
        if constexpr (std::is_same_v<Body, wire::Hello> || std::is_same_v<Body, wire::Report>) {
          said.body = std::move(body);
        } else {
          said.body = ctl::job::WorkerBody(std::move(body));
        }
      },
      message.body);
  return said;
}

}  // namespace

void Program::kill(int signal) {
  if (!alive_) return;
  end(false);
  tell_end(-1, signal);
}

void Program::exit(int code) {
  if (!alive_) return;
  last_words();
  end(false);
  tell_end(code, 0);
}

// To the agent of its host.
void Program::tell_end(int code, int signal) {
  world_.say("{}.{} exits with code {} signal {}", member_.worker, member_.attempt, code, signal);
  if (code == kGivesUp) around_.checks.gave_up(around_.daemons.machine(), *this);
  around_.hosts.at(host_).program_exited(*this, code, signal);
}

void Program::say(Said message) { around_.hosts.at(host_).from_program(*this, std::move(message)); }

void Program::end(bool silently) {
  world_.say("{}.{} ends", member_.worker, member_.attempt);
  alive_ = false;
  process_.end();
  ended(silently);
}

void Program::stop() {
  if (!std::exchange(stopped_, true)) process_.freeze();
}

void Program::go_on() {
  if (alive_ && std::exchange(stopped_, false)) process_.thaw();
}

bool Program::may_send() {
  if (!packets_left_) return true;
  if (*packets_left_ == 0) return false;
  if (--*packets_left_ == 0) {
    world_.say("fault: {}.{} is killed while it speaks", member_.worker, member_.attempt);
    later({}, [this] { kill(SIGKILL); });
  }
  return true;
}

// ------------------------------------------------------------- with a client core

void ClientProgram::start() {
  later({}, [this] { feed(client::Greet{}); });
}

void ClientProgram::terminate() {
  later({}, [this] {
    sigterm_ = true;
    turn();
  });
}

void ClientProgram::receive(Told message) {
  const auto* body = std::get_if<client::Inbound>(&message.body);
  if (body == nullptr) return;  // the message is not for workers
  later({}, [this, message = client::MessageReceived{message.generation, message.seq, *body}] {
    feed(message);
    if (!alive()) return;
    if (core_.welcome() && !std::exchange(greeted_, true)) welcomed();
    turn();
  });
}

void ClientProgram::feed(const client::Input& input) {
  if (!alive()) return;
  client::Effects effects;
  core_.step(input, clock_.now(), effects);
  perform(std::move(effects));
}

void ClientProgram::perform(client::Effects effects) {
  std::optional<Generation> released;  // is released after the messages are handled, because the
                                       // training thread is slower
  for (client::Effect& effect : effects) {
    if (auto* message = std::get_if<client::SendMessage>(&effect)) {
      say(said_by(std::move(*message)));
    } else {
      released = std::get<client::ReleaseCollective>(effect).generation;
    }
  }
  if (released) abort(*released);
  if (core_.refusal() && alive()) {
    world_.say("{}.{} is refused: {}", member_.worker, member_.attempt, core_.refusal()->message);
    end(false);
    return tell_end(kGivesUp, 0);
  }
  arm();
}

void ClientProgram::arm() {
  const auto deadline = core_.deadline();
  if (!alive() || !deadline || (armed_ && *armed_ <= *deadline && *armed_ >= clock_.now())) return;
  // A thread takes some time to wake up.
  const MonoTime when = std::max(*deadline, clock_.now() + microseconds(100));
  armed_ = when;
  later(clock_.real(when - clock_.now()), [this, when] {
    if (armed_ != when) return;
    armed_.reset();
    feed(client::TimePassed{});
  });
}

}  // namespace antdt::sim
