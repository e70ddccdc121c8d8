// Rows of floats by 64-bit key.
//
// A row is its key, `width` values and `state` floats of the optimizer, side by side, so that an
// update touches one place in memory. Rows are in blocks that never move. An index with eight bytes
// per entry (row number and a part of the key's hash) finds them by linear probing; it is at most
// 0.7 full. Memory per row: 8 + 4 (width + state) bytes, and 11 to 23 for the index. It comes from
// the default resource (std::pmr), which a process with large tables sets to core/os/forks/huge_pages.h.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/permutation.h"

namespace antdt::ps {

class RowTable {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  RowTable(std::uint32_t width, std::uint32_t state);

  [[nodiscard]] std::uint32_t width() const { return width_; }
  [[nodiscard]] std::uint32_t state() const { return state_; }
  [[nodiscard]] std::uint64_t rows() const { return count_; }
  // Memory in use, including the free part of the last block and of the index.
  [[nodiscard]] std::uint64_t bytes() const;

  [[nodiscard]] static constexpr std::uint64_t hash(std::uint64_t key) { return mix64(key); }

  // The row of this key, or kNone. `h` is hash(key).
  [[nodiscard]] std::uint32_t find(std::uint64_t key, std::uint64_t h) const;
  // Adds a row of zeros; the key must not exist (see find).
  std::uint32_t add(std::uint64_t key, std::uint64_t h);

  [[nodiscard]] std::uint64_t key(std::uint32_t row) const;
  [[nodiscard]] std::span<float> values(std::uint32_t row) { return {floats(row), width_}; }
  [[nodiscard]] std::span<const float> values(std::uint32_t row) const {
    return {floats(row), width_};
  }
  [[nodiscard]] std::span<float> state(std::uint32_t row) { return {floats(row) + width_, state_}; }
  [[nodiscard]] std::span<const float> state(std::uint32_t row) const {
    return {floats(row) + width_, state_};
  }

  // Looking up a key waits for memory twice; prefetching several keys first lets these waits
  // overlap.
  void prefetch_index(std::uint64_t h) const { __builtin_prefetch(&index_[h & mask_]); }
  void prefetch_row(std::uint64_t h) const;

 private:
  struct Entry {
    std::uint32_t row = kNone;
    std::uint32_t tag = 0;  // upper half of the hash
  };
  // Rows of one size, 2^k of them in each block.
  class Blocks {
   public:
    explicit Blocks(std::uint32_t stride);
    Blocks(Blocks&& other) noexcept = default;
    Blocks& operator=(Blocks&&) = delete;
    ~Blocks();

    [[nodiscard]] float* row(std::uint32_t row) const {
      return at_[row >> shift_] + std::size_t{row & mask_} * stride_;
    }
    [[nodiscard]] std::uint64_t rows() const { return std::uint64_t{at_.size()} << shift_; }
    [[nodiscard]] std::uint64_t bytes() const { return at_.size() * floats() * sizeof(float); }
    void add();  // adds a row of zeros

   private:
    [[nodiscard]] std::size_t floats() const { return std::size_t{stride_} << shift_; }

    std::pmr::polymorphic_allocator<float> memory_;
    std::uint32_t stride_, shift_, mask_;
    std::vector<float*> at_;
  };

  [[nodiscard]] float* floats(std::uint32_t row) const { return blocks_.row(row) + 2; }
  void grow();

  std::uint32_t width_, state_;
  Blocks blocks_;  // a row is its key, which takes two floats, and its floats
  std::uint32_t count_ = 0;
  std::uint64_t mask_;
  std::pmr::vector<Entry> index_;
};

}  // namespace antdt::ps
