#include "core/permutation.h"

#include <bit>

#include "core/check.h"

namespace antdt {

Permutation::Permutation(std::uint64_t n, std::uint64_t seed) : n_(n) {
  ANTDT_CHECK(n <= (1ULL << 62), "permutation of {} elements", n);
  const int bits = n <= 2 ? 2 : std::bit_width(n - 1);
  half_bits_ = (bits + 1) / 2;
  half_mask_ = (1ULL << half_bits_) - 1;
  for (std::size_t i = 0; i < keys_.size(); ++i) keys_[i] = combine_seed(seed, i + 1);
}

std::uint64_t Permutation::encrypt(std::uint64_t x) const {
  std::uint64_t left = x >> half_bits_;
  std::uint64_t right = x & half_mask_;
  for (const std::uint64_t key : keys_) {
    const std::uint64_t next = left ^ (mix64(right ^ key) & half_mask_);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

std::uint64_t Permutation::decrypt(std::uint64_t x) const {
  std::uint64_t left = x >> half_bits_;
  std::uint64_t right = x & half_mask_;
  for (auto key = keys_.rbegin(); key != keys_.rend(); ++key) {
    const std::uint64_t previous = right ^ (mix64(left ^ *key) & half_mask_);
    right = left;
    left = previous;
  }
  return (left << half_bits_) | right;
}

std::uint64_t Permutation::operator()(std::uint64_t i) const {
  ANTDT_CHECK(i < n_, "position {} of a permutation of {}", i, n_);
  // A value past n lies on the same cycle as some value below n, so the walk ends. It takes fewer
  // than four steps on average, because the domain is smaller than 4n.
  do i = encrypt(i);
  while (i >= n_);
  return i;
}

std::uint64_t Permutation::inverse(std::uint64_t v) const {
  ANTDT_CHECK(v < n_, "value {} of a permutation of {}", v, n_);
  do v = decrypt(v);
  while (v >= n_);
  return v;
}

}  // namespace antdt
