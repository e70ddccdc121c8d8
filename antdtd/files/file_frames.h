// How an agent and a file service speak over their socket pair: each packet is three lengths
// (32 bits, this machine's order) and the link it belongs to, its envelope and its body.
//
// Bodies are chunks of files: they are written from where they lie, and read to where they stay.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/result.h"
#include "core/wire/envelope.h"

namespace antdt::antdtd {

using FrameLengths = std::array<std::uint32_t, 3>;  // of peer, envelope, body

// One packet on its way into a socket, which takes it part by part.
class FrameWriter {
 public:
  explicit FrameWriter(wire::Packet packet);

  enum class Outcome { kAll, kPart, kFailed };
  // What the socket takes now; with a socket that blocks, kPart is none of the answers.
  [[nodiscard]] Outcome write(int socket);
  [[nodiscard]] std::size_t size() const;

 private:
  wire::Packet packet_;
  FrameLengths lengths_;
  std::size_t written_ = 0;
};

// Takes packets out of bytes as they come.
class FrameReader {
 public:
  // Where the next bytes are to be put: never empty. taken() says how many there were.
  [[nodiscard]] std::pair<char*, std::size_t> room();
  void taken(std::size_t bytes);
  // The packet that is whole by the bytes taken last, if one is. An error: these are no frames.
  [[nodiscard]] Result<std::optional<wire::Packet>> next();

 private:
  [[nodiscard]] std::string* part(std::size_t number);
  void begin_packet();

  FrameLengths lengths_{};
  wire::Packet packet_;
  std::size_t reads_ = 0;  // 0: the lengths, then peer, envelope, body; 4: it is whole
  std::size_t have_ = 0;   // of that
  bool broken_ = false;
};

}  // namespace antdt::antdtd
