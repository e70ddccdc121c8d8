// One side of a connection in ZeroMQ's protocol, ZMTP 3 with the NULL
// mechanism (https://rfc.zeromq.org/spec/23/): the side of a DEALER that speaks
// to a ROUTER. Bytes in, packets and bytes out; no socket, no clock.
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

// What a DEALER sends first: greeting and READY at once. Messages may follow
// when the peer's READY has come, not before.
[[nodiscard]] std::string zmtp_opening();

// Appends a packet as it is sent: envelope and body, two frames.
void append_zmtp(std::string& out, const wire::Packet& packet);

// Takes apart what the peer sends on one connection. It holds what has arrived
// and is not a packet yet: at most a packet's two frames and one frame more,
// and room only for bytes that came.
class ZmtpReader {
 public:
  void feed(std::string_view bytes) { bytes_.append(bytes); }
  // The next packet, once all of it has come. A message that does not have two
  // frames is dropped. Nothing more comes after a problem.
  [[nodiscard]] std::optional<wire::Packet> next();

  // The peer's READY has come.
  [[nodiscard]] bool ready() const { return stage_ == Stage::kMessages; }
  // Why the connection must be ended; empty while it need not.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // Answers to the peer's heartbeats, to be sent; empty after that.
  [[nodiscard]] std::string take_answers();

 private:
  enum class Stage { kGreeting, kReady, kMessages };
  struct Frame {
    bool more = false;
    bool command = false;
    std::string_view body;  // into bytes_
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
  std::string bytes_;       // arrived
  std::size_t read_ = 0;    // of these: taken
  wire::Packet packet_;     // its frames so far
  std::size_t frames_ = 0;  // of the present message
  std::string answers_;
  std::string problem_;
};

}  // namespace antdt::transport
