// Messages for one peer of a ROUTER socket that may be away or slow.
//
// Messages that cannot be sent now are kept in order and sent when the peer is there, so that a
// daemon or worker that comes back receives what was sent meanwhile. Kept messages are bounded and
// the oldest are dropped; a peer that needs an answer repeats its request. What ZeroMQ has of a
// peer that reads slowly is bounded, too: one worker's messages must not take the memory of the
// agent that all users share.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "core/transport/socket.h"

namespace antdt::antdtd {

class Outbox {
 public:
  static constexpr std::size_t kMaxMessages = 4096;
  static constexpr std::size_t kMaxBytes = 16 * 1024 * 1024;  // or a single message
  // No more is passed to ZeroMQ while it has this much.
  static constexpr std::size_t kMaxInFlight = 16 * 1024 * 1024;
  // The same for what is sent or dropped: small messages, which keep some room.
  static constexpr std::size_t kMaxInFlightOrDropped = kMaxInFlight + 1024 * 1024;

  // From now on messages go to this routing id. Kept messages are sent.
  void set_peer(transport::Socket& socket, const std::string& peer);
  [[nodiscard]] const std::string& peer() const { return peer_; }  // "": the peer is away

  // Sends `packet`, or keeps it. Its peer is filled in.
  void send(transport::Socket& socket, wire::Packet packet);
  // Sends `packet` if that is possible now.
  void send_or_drop(transport::Socket& socket, wire::Packet packet);
  // Tries again to send what was kept.
  void flush(transport::Socket& socket);

  // Whether flush() should be called again soon: the peer is there but slow.
  [[nodiscard]] bool stuck() const { return !peer_.empty() && !kept_.empty(); }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  [[nodiscard]] bool try_send(transport::Socket& socket, wire::Packet& packet,
                              std::size_t most = kMaxInFlight);
  void keep(wire::Packet packet);

  std::string peer_;
  transport::InFlight in_flight_;  // also what earlier peers have not taken yet
  std::deque<wire::Packet> kept_;
  std::size_t kept_bytes_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace antdt::antdtd
