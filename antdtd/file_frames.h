// How an agent and a file service speak over their socket pair: each packet is three lengths
// (32 bits, this machine's order) and the link it belongs to, its envelope and its body.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/wire/messages.h"

namespace antdt::antdtd {

[[nodiscard]] std::string to_frame(const wire::Packet& packet);

// Takes packets out of bytes as they come.
class FrameReader {
 public:
  // Where the next bytes are to be put: never empty. taken() says how many there were.
  [[nodiscard]] std::pair<char*, std::size_t> room();
  void taken(std::size_t bytes) { have_ += bytes; }
  // The next packet that is whole, if there is one. An error: these are no frames.
  [[nodiscard]] Result<std::optional<wire::Packet>> next();

 private:
  std::string bytes_;
  std::size_t begin_ = 0;  // of what was not given out yet
  std::size_t have_ = 0;   // behind it comes room
};

}  // namespace antdt::antdtd
