#include "antdtd/agent/outbox.h"

#include <utility>

namespace antdt::antdtd {
namespace {
std::size_t size_of(const wire::Packet& packet) {
  return packet.envelope.size() + packet.body.size();
}
}  // namespace

void Outbox::set_peer(transport::Socket& socket, const std::string& peer) {
  peer_ = peer;
  flush(socket);
}

void Outbox::send(transport::Socket& socket, wire::Packet packet) {
  if (kept_.empty() && try_send(socket, packet)) return;
  keep(std::move(packet));
}

void Outbox::send_or_drop(transport::Socket& socket, wire::Packet packet) {
  [[maybe_unused]] const bool sent = try_send(socket, packet, kMaxInFlightOrDropped);
}

void Outbox::flush(transport::Socket& socket) {
  while (!kept_.empty() && try_send(socket, kept_.front())) {
    kept_bytes_ -= size_of(kept_.front());
    kept_.pop_front();
  }
}

bool Outbox::try_send(transport::Socket& socket, wire::Packet& packet, std::size_t most) {
  if (peer_.empty() || in_flight_.bytes() >= most) return false;
  packet.peer = peer_;
  const transport::SendOutcome outcome = socket.send(packet, in_flight_);
  if (outcome == transport::SendOutcome::kPeerGone) peer_.clear();
  return outcome == transport::SendOutcome::kSent;
}

void Outbox::keep(wire::Packet packet) {
  kept_bytes_ += size_of(packet);
  kept_.push_back(std::move(packet));
  while (kept_.size() > 1 && (kept_.size() > kMaxMessages || kept_bytes_ > kMaxBytes)) {
    kept_bytes_ -= size_of(kept_.front());
    kept_.pop_front();
    ++dropped_;
  }
}

}  // namespace antdt::antdtd
