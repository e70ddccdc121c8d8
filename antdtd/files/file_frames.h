// The framing between an agent and a file service on their socket pair: each packet is three
// lengths (32 bits, in this machine's byte order) and then the link it belongs to, its envelope and
// its body.
//
// Bodies are chunks of files. They are written from their source and read into their destination
// without a copy.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/result.h"
#include "core/wire/envelope.h"

namespace antdt::antdtd {

using FrameLengths = std::array<std::uint32_t, 3>;  // lengths of peer, envelope, body

// One packet that is written to a socket in parts.
class FrameWriter {
 public:
  explicit FrameWriter(wire::Packet packet);

  enum class Outcome { kAll, kPart, kFailed };
  // Writes as much as the socket accepts. With a blocking socket the outcome is never kPart.
  [[nodiscard]] Outcome write(int socket);
  [[nodiscard]] std::size_t size() const;

 private:
  wire::Packet packet_;
  FrameLengths lengths_;
  std::size_t written_ = 0;
};

// Extracts packets from bytes as they arrive.
class FrameReader {
 public:
  // The buffer for the next bytes, which is never empty. taken() says how many bytes were put
  // there.
  [[nodiscard]] std::pair<char*, std::size_t> room();
  void taken(std::size_t bytes);
  // The packet that the last bytes completed, if any. The error says that these are not frames.
  [[nodiscard]] Result<std::optional<wire::Packet>> next();

 private:
  [[nodiscard]] std::string* part(std::size_t number);
  void begin_packet();

  FrameLengths lengths_{};
  wire::Packet packet_;
  // 0: reads the lengths, 1 to 3: peer, envelope, body, 4: the packet is complete
  std::size_t reads_ = 0;
  std::size_t have_ = 0;  // bytes read of that part
  bool broken_ = false;
};

}  // namespace antdt::antdtd
