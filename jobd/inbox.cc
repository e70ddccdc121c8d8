#include "jobd/inbox.h"

#include <tuple>
#include <type_traits>
#include <utility>

#include "core/overloaded.h"
#include "core/wire/dispatch.h"
#include "jobd/shell.h"

namespace antdt::jobd {
namespace {

// How many messages of our own socket are handled in a turn: enough that one commit serves many
// requests, few enough that agents and timers get their turn.
constexpr int kBatch = 512;
// How many messages are kept that arrive while a commit is waited for. Dropped ones are sent again.
constexpr std::size_t kMostDeferred = 10'000;

}  // namespace

Status Inbox::listen(transport::Context& context) {
  ANTDT_TRY(auto socket,
            transport::Socket::bind_ipc(context, shell_.options.socket_dir + "/jobd.sock"));
  shell_.socket.emplace(std::move(socket));
  shell_.loop.watch_socket(*shell_.socket, [this] { receive(); });
  return {};
}

void Inbox::receive() {
  for (const wire::Packet& packet : std::exchange(deferred_, {})) on_direct(packet);
  for (int n = 0; n < kBatch; ++n) {
    const auto packet = shell_.socket->receive();
    if (!packet) return;
    on_direct(*packet);
  }
}

void Inbox::answer_status_alone() {
  while (shell_.socket && deferred_.size() < kMostDeferred) {
    auto packet = shell_.socket->receive();
    if (!packet) return;
    const auto envelope = wire::open_envelope(*packet);
    if (!envelope) continue;
    const auto request = wire::decode<wire::StatusRequest>(packet->body);
    if (envelope->kind != wire::StatusRequest::kKind || !request) {
      // The socket may stay silent for good, so what waits here is not left to its next message.
      if (deferred_.empty()) shell_.loop.call_after(Duration::zero(), [this] { receive(); });
      deferred_.push_back(std::move(*packet));
      continue;
    }
    wire::Envelope reply;
    reply.job = shell_.config.job.id;
    reply.seq = envelope->seq;
    wire::Packet answer =
        wire::make_packet(std::move(reply), shell_.operators.status_for(*request));
    answer.peer = packet->peer;
    std::ignore = shell_.socket->send(answer);
  }
}

void Inbox::on_direct(const wire::Packet& packet) {
  const auto envelope = wire::open_envelope(packet);
  if (!envelope) return;
  if (envelope->attempt == Attempt{}) return shell_.operators.answer(packet, *envelope);
  if (envelope->kind == wire::Hello::kKind) return welcome(packet, *envelope);
  on_worker_message(*envelope, packet.body, {"", packet.peer});
}

void Inbox::welcome(const wire::Packet& packet, const wire::Envelope& envelope) {
  const Route route{"", packet.peer};
  const Member member{envelope.worker, envelope.attempt};
  const auto refuse = [&](wire::RefusalCode code, std::string reason) {
    shell_.outbox.add({route, wire::make_packet(envelope, wire::Refused{code, std::move(reason)})});
  };
  if (shell_.config.roles.worker.count > 0) {
    return refuse(wire::RefusalCode::kUnknown, "this job starts its workers itself");
  }
  const auto hello = wire::decode<wire::Hello>(packet.body);
  if (!hello) return refuse(wire::RefusalCode::kInvalid, hello.error().message);
  const auto version = wire::negotiate_version(*hello);
  if (!version) return refuse(wire::RefusalCode::kVersion, version.error().message);
  shell_.outbox.reached_by(member.worker, route);
  shell_.outbox.send(
      route, member, {},
      wire::WorkerWelcome{*version, "local", shell_.options.run_dir, shell_.config_json});
}

void Inbox::on_worker_message(const wire::Envelope& envelope, std::string_view body,
                              const Route& route) {
  const Member member{envelope.worker, envelope.attempt};
  shell_.outbox.handling(member, route);
  const auto refuse = [&](std::string reason) {
    shell_.outbox.send(route, member, envelope.generation,
                       wire::Refused{wire::RefusalCode::kInvalid, std::move(reason)}, envelope.seq);
  };
  const auto say = [&]<class T>(Result<T> message) {
    if (!message) return refuse(message.error().message);
    if (shell_.turns.pause().ignores<T>()) return;
    if constexpr (std::is_same_v<T, wire::Join>) shell_.outbox.reached_by(member.worker, route);
    if constexpr (std::is_same_v<T, wire::Report>) {
      shell_.feed(ctl::job::WorkerSaid{member, envelope.generation, envelope.seq,
                                       wire::Metrics{*message, 0}});
    } else {
      shell_.feed(
          ctl::job::WorkerSaid{member, envelope.generation, envelope.seq, std::move(*message)});
    }
  };
  bool known =
      wire::dispatch<wire::Fetch, wire::Progress, wire::Metrics, wire::Join, wire::Address,
                     wire::Ready, wire::Recalled, wire::CheckpointBegun, wire::CheckpointWritten,
                     wire::Bye, wire::PsServing, wire::PsSaved, wire::PsStats, wire::Traced,
                     wire::StackTold>(envelope.kind, body, say);
  // A client without an agent sends its reports itself.
  if (!known && route.endpoint.empty()) {
    known = wire::dispatch<wire::Report>(envelope.kind, body, say);
  }
  if (!known && envelope.kind != wire::Hello::kKind) {
    refuse(fmt::format("the job daemon does not know '{}'", envelope.kind));
  }
  shell_.outbox.handled();
}

void Inbox::on_agent_message(const std::string& endpoint, const wire::Envelope& envelope,
                             std::string_view body) {
  const Member member{envelope.worker, envelope.attempt};
  if (envelope.kind == wire::RelayedRequest::kKind) {
    return shell_.operators.answer_relayed(endpoint, envelope, body);
  }
  if (shell_.standbys.on_agent_message(endpoint, envelope, body)) return;
  // A message that cannot be read is ignored; the agent repeats it.
  const Overloaded act{
      [&](const wire::ReservedPort& m) { shell_.hosts.on_port(m.port); },
      [&](const wire::HostDrain& m) { shell_.hosts.on_drain(endpoint, m); },
      [&](const wire::HostDevices& m) { shell_.hosts.on_devices(endpoint, m); },
      [&](const wire::DeviceTrouble& m) { shell_.hosts.on_device_trouble(endpoint, m); },
      [&](const wire::ProcessStarted& m) {
        shell_.feed(ctl::lifecycle::WorkerStarted{member, m.pid});
      },
      [&](const wire::ProcessExited& m) {
        shell_.outbox.send({endpoint, ""}, member, {}, wire::ExitSeen{});
        shell_.feed(ctl::lifecycle::WorkerExited{member, m});
      },
      [&](const wire::Refused& m) {
        shell_.feed(ctl::lifecycle::WorkerStartRefused{member, m.reason});
      }};
  const bool of_agent =
      wire::dispatch<wire::ReservedPort, wire::HostDrain, wire::HostDevices, wire::DeviceTrouble,
                     wire::ProcessStarted, wire::ProcessExited, wire::Refused>(
          envelope.kind, body, [&](const auto& message) {
            if (message) act(*message);
          });
  if (!of_agent && envelope.attempt != Attempt{}) {
    on_worker_message(envelope, body, {endpoint, ""});
  }
}

}  // namespace antdt::jobd
