// A server's whole machine as pieces of bytes, and back: what a process gets that is to be
// its backup from now on.
//
//   part 0       the machine without its rows (node_image.h)
//   part 1 + s   slice s, if there is a row in it, as a file of a checkpoint (slice_image.h)
//
// Parts rise. A piece is of one part and has at most kStatePiece bytes; the last one of all
// says so.
// Slices are taken in one by one, so nobody holds more than one of them twice.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "trainer/ps/server_node.h"

namespace antdt::ps {

struct StatePiece {
  std::uint32_t part = 0;
  std::string bytes;
  bool last = false;
};

inline constexpr std::size_t kStatePiece = 1U << 16;

// Between two of its events. The sink gets the pieces in their order.
void write_state(const ServerNode& node, const std::function<void(const StatePiece&)>& sink);

// Into a machine that has begun and taken no event. After an error (kCorrupt: pieces that
// are too long or out of order, or what they say cannot be) the machine is of no use.
class StateReader {
 public:
  [[nodiscard]] Status take(ServerNode& node, const wire::PsImage& piece);

 private:
  // What is staged and decided; far below what fits in memory.
  static constexpr std::size_t kLongestHead = 1ULL << 32;

  [[nodiscard]] Status read_part(ServerNode& node);

  std::uint32_t part_ = 0;
  std::string bytes_;  // of it, so far
};

}  // namespace antdt::ps
