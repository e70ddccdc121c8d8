// One side of a connection in ZeroMQ's protocol, ZMTP 3 with the NULL mechanism
// (https://rfc.zeromq.org/spec/23/): the side of a DEALER that talks to a ROUTER. It converts bytes
// to packets and back, without a socket or a clock.
//
//     greeting  64 bytes: ff ........ 7f | 3 | 0 | "NULL" and zeros to 20 bytes |
//               as-server, filler: zeros
//     READY     a command, of each side: Socket-Type and other properties
//     then      messages; commands may stand between their frames
//
// A frame is flags (1: more frames of this message follow, 2: long size, 4: a
// command), its size (a byte, or 8 big-endian where long), and its body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/wire/envelope.h"

namespace antdt::transport {

inline constexpr std::size_t kMaxFrameBytes = std::size_t{64} * 1024 * 1024;

// What a DEALER sends first: its greeting and READY. Messages may follow only when the peer's READY
// has arrived.
[[nodiscard]] std::string zmtp_opening();

// Appends a packet in the form in which it is sent: envelope and body, two frames.
void append_zmtp(std::string& out, const wire::Packet& packet);

// Parses what the peer sends on one connection. It holds bytes that have arrived and are not a
// packet yet: at most a packet's two frames and one frame more. It allocates memory only for bytes
// that arrived.
class ZmtpReader {
 public:
  void feed(std::string_view bytes) { bytes_.append(bytes); }
  // The next packet, once it is complete. A message that does not have two frames is dropped.
  // Nothing follows a problem.
  [[nodiscard]] std::optional<wire::Packet> next();

  // Whether the peer's READY has arrived.
  [[nodiscard]] bool ready() const { return stage_ == Stage::kMessages; }
  // Why the connection must be ended; empty if it need not be.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // Returns the answers to the peer's heartbeats, which must be sent, and clears them.
  [[nodiscard]] std::string take_answers();

 private:
  enum class Stage { kGreeting, kReady, kMessages };
  struct Frame {
    bool more = false;
    bool command = false;
    std::string_view body;  // refers into bytes_
  };
  [[nodiscard]] std::string_view rest() const { return std::string_view(bytes_).substr(read_); }
  [[nodiscard]] bool read_greeting();
  [[nodiscard]] std::optional<Frame> next_frame();
  void on_command(std::string_view body);
  void on_ready(std::string_view properties);
  [[nodiscard]] bool on_frame(const Frame& frame);
  void refuse(std::string why);
  void forget_what_was_read();

  Stage stage_ = Stage::kGreeting;
  std::string bytes_;       // bytes that arrived
  std::size_t read_ = 0;    // how many of these were read
  wire::Packet packet_;     // the present packet's frames so far
  std::size_t frames_ = 0;  // number of frames of the present message
  std::string answers_;
  std::string problem_;
};

}  // namespace antdt::transport
