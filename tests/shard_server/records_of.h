// Which records the pieces of a grant are.
#pragma once

#include <cstdint>
#include <vector>

#include "core/permutation.h"
#include "core/wire/shard_messages.h"

namespace antdt::shard_server {

// In the order in which they are trained.
inline std::vector<std::uint64_t> records_of(const std::vector<wire::Piece>& pieces) {
  std::vector<std::uint64_t> records;
  for (const wire::Piece& piece : pieces) {
    const Permutation order(piece.shard_records, piece.order_seed);
    for (std::uint64_t p = piece.from; p < piece.to; ++p) {
      records.push_back(piece.shard_first + (piece.shuffled ? order(p) : p));
    }
  }
  return records;
}

}  // namespace antdt::shard_server
