#include "antdtd/agent/worker_links.h"

#include <utility>

#include "antdtd/agent/worker_gate.h"
#include "core/log/log.h"
#include "core/wire/packet.h"

namespace antdt::antdtd {

WorkerLinks::WorkerLinks(transport::Socket socket, std::string host, const Supervision& supervision,
                         Handlers handlers)
    : socket_(std::move(socket)),
      host_(std::move(host)),
      supervision_(supervision),
      handlers_(std::move(handlers)) {}

void WorkerLinks::receive(int limit) {
  std::size_t bytes = 0;
  for (int n = 0; n < limit && bytes < kMaxBytesOfABatch; ++n) {
    auto packet = socket_.receive();
    if (!packet) return;
    bytes += packet->body.size();
    handle(std::move(*packet));
  }
}

void WorkerLinks::handle(wire::Packet packet) {
  Result<wire::Envelope> envelope = wire::open_envelope(packet);
  if (!envelope) return log_debug("from a worker: {}", envelope.error().message);
  const ProcessKey key{std::move(envelope->job), {envelope->worker, envelope->attempt}};
  envelope->job = key.job;
  if (!handlers_.serves(key.job)) {
    return refuse(*envelope, packet, wire::RefusalCode::kUnknown,
                  "job " + key.job + " is another user's");
  }
  if (auto refused = refusal_of(key, supervision_)) {
    return refuse(*envelope, packet, refused->code, std::move(refused->reason));
  }
  Outbox& outbox = workers_[key];
  if (envelope->kind == wire::Hello::kKind) {
    welcome(*envelope, packet, *supervision_.find(key)->start);
  }
  if (outbox.peer() != packet.peer) outbox.set_peer(socket_, packet.peer);
  if (envelope->kind == wire::Hello::kKind) return;
  if (envelope->kind == wire::Report::kKind) {
    const Result<wire::Report> report = wire::decode<wire::Report>(packet.body);
    if (report) return handlers_.on_report(key, *report);
    return refuse(*envelope, packet, wire::RefusalCode::kInvalid, report.error().message);
  }
  handlers_.on_relay(key.job, std::move(packet));
}

// Sent before all messages that were kept for the worker.
void WorkerLinks::welcome(const wire::Envelope& envelope, const wire::Packet& packet,
                          const wire::StartProcess& start) {
  const Result<wire::Hello> hello = wire::decode<wire::Hello>(packet.body);
  if (!hello) return refuse(envelope, packet, wire::RefusalCode::kInvalid, hello.error().message);
  const Result<std::uint32_t> version = wire::negotiate_version(*hello);
  if (!version)
    return refuse(envelope, packet, wire::RefusalCode::kVersion, version.error().message);
  wire::Packet reply = wire::make_packet(
      envelope, wire::WorkerWelcome{*version, host_, start.run_dir, start.config_json});
  reply.peer = packet.peer;
  [[maybe_unused]] const auto sent = socket_.send(reply);  // a worker repeats its hello
}

void WorkerLinks::refuse(const wire::Envelope& envelope, const wire::Packet& packet,
                         wire::RefusalCode code, std::string reason) {
  wire::Packet reply = wire::make_packet(envelope, wire::Refused{code, std::move(reason)});
  reply.peer = packet.peer;
  [[maybe_unused]] const auto sent = socket_.send(reply);
}

void WorkerLinks::deliver(const ProcessKey& key, wire::Packet packet) {
  if (!hears_job_daemon(key, supervision_)) return;
  workers_[key].send(socket_, std::move(packet));
}

void WorkerLinks::forget(const ProcessKey& key) { workers_.erase(key); }

bool WorkerLinks::flush() {
  bool left = false;
  for (auto& [key, outbox] : workers_) {
    if (!outbox.stuck()) continue;
    outbox.flush(socket_);
    left = left || outbox.stuck();
  }
  return left;
}

}  // namespace antdt::antdtd
