// Parts of lists of pieces, which name records by their positions in shards. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/permutation.h"
#include "core/wire/shard_messages.h"

namespace antdt::data {

// The pieces of records [from, to) of those that `pieces` name, in their order.
[[nodiscard]] inline std::vector<wire::Piece> cut(const std::vector<wire::Piece>& pieces,
                                                  std::uint64_t from, std::uint64_t to) {
  std::vector<wire::Piece> part;
  std::uint64_t begin = 0;  // index of the piece's first record
  for (const wire::Piece& piece : pieces) {
    const std::uint64_t end = begin + (piece.to - piece.from);
    if (std::max(from, begin) < std::min(to, end)) {
      wire::Piece some = piece;
      some.from = piece.from + (std::max(from, begin) - begin);
      some.to = piece.from + (std::min(to, end) - begin);
      part.push_back(some);
    }
    begin = end;
  }
  return part;
}

// Appends a piece; one piece, if its records follow the last one's in the order of the same shard.
inline void add_piece(const wire::Piece& piece, std::vector<wire::Piece>& to) {
  const bool goes_on =
      !to.empty() && to.back().shard == piece.shard && to.back().shard_first == piece.shard_first &&
      to.back().shard_records == piece.shard_records && to.back().order_seed == piece.order_seed &&
      to.back().shuffled == piece.shuffled && to.back().to == piece.from;
  goes_on ? void(to.back().to = piece.to) : to.push_back(piece);
}

// Appends the numbers of a piece's records in the data set.
inline void add_record_numbers(const wire::Piece& piece, std::vector<std::uint64_t>& numbers) {
  const Permutation order(piece.shard_records, piece.order_seed);
  for (std::uint64_t position = piece.from; position < piece.to; ++position) {
    numbers.push_back(piece.shard_first + (piece.shuffled ? order(position) : position));
  }
}

}  // namespace antdt::data
