// The ids of a batch as keys of rows on servers: each key once, and where each id went.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"

namespace antdt::trainer {

// Each id once, rising. Ids must be 0 or more.
[[nodiscard]] std::vector<std::uint64_t> unique_keys(std::span<const std::int64_t> ids);

// Finds ids among keys with a hash table, whose memory it keeps for the next batch.
class KeyPositions {
 public:
  // positions[i] becomes the index of ids[i] in `keys`, which must be unique; kInternal names an id
  // that is not there.
  [[nodiscard]] Status find(std::span<const std::uint64_t> keys, std::span<const std::int64_t> ids,
                            std::vector<std::int64_t>& positions);

 private:
  void insert(std::span<const std::uint64_t> keys);
  [[nodiscard]] std::size_t first_slot(std::uint64_t key) const;

  std::vector<std::uint32_t> slots_;  // by hash, with linear probing: an index in keys, or kEmpty
  int shift_ = 0;                     // from a hash to a slot
};

}  // namespace antdt::trainer
