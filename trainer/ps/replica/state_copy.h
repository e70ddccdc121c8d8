// The whole state of a server as pieces of bytes, and back: what a process receives to become the
// server's backup.
//
//   part 0       the machine without its rows (node_image.h)
//   part 1 + s   slice s, if there is a row in it, as a file of a checkpoint (slice_image.h)
//
// Parts come in rising order. A piece belongs to one part and has at most kStatePiece bytes; the
// last piece of all is marked. Slices are read one by one, so at most one of them is in memory
// twice.
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

// To be called between two events of the server. The sink gets the pieces in order.
void write_state(const ServerNode& node, const std::function<void(const StatePiece&)>& sink);

// Takes over such a state into a machine that has taken no event. After an error (kCorrupt: pieces
// that are too long or out of order, or invalid contents) that machine must not be used.
class StateReader {
 public:
  [[nodiscard]] Status take(ServerNode& node, const wire::PsImage& piece);

 private:
  // Bound of the part with what is staged and decided and with workers' replicas; far below what
  // fits in memory.
  static constexpr std::size_t kLongestHead = 1ULL << 32;

  [[nodiscard]] Status read_part(ServerNode& node);

  std::uint32_t part_ = 0;
  std::string bytes_;  // bytes of it so far
};

}  // namespace antdt::ps
