// Seeded permutations that are computed and never stored.
//
// A Feistel network over the smallest even number of bits that holds n, with cycle walking for the
// values past n (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002). Both
// directions cost a few tens of nanoseconds for every n. The mapping is part of the data's
// identity: it must not change unless kPermutationVersion is raised.
#pragma once

#include <array>
#include <cstdint>

namespace antdt {

inline constexpr int kPermutationVersion = 1;

// A good 64-bit mixer (the finaliser of splitmix64).
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
// Derives seeds from seeds: combine_seed(job seed, epoch, shard) and the like.
[[nodiscard]] constexpr std::uint64_t combine_seed(std::uint64_t seed, std::uint64_t part) {
  return mix64(seed ^ mix64(part));
}

// A bijection of [0, n), n >= 0 and at most 2^62, which is the same for the same (n, seed) on every
// machine. Value type, 80 bytes.
class Permutation {
 public:
  Permutation(std::uint64_t n, std::uint64_t seed);

  [[nodiscard]] std::uint64_t size() const { return n_; }
  // The value for position i (< size).
  [[nodiscard]] std::uint64_t operator()(std::uint64_t i) const;
  // The position of value v (< size).
  [[nodiscard]] std::uint64_t inverse(std::uint64_t v) const;

 private:
  static constexpr int kRounds = 6;
  [[nodiscard]] std::uint64_t encrypt(std::uint64_t x) const;
  [[nodiscard]] std::uint64_t decrypt(std::uint64_t x) const;

  std::uint64_t n_;
  int half_bits_;
  std::uint64_t half_mask_;
  std::array<std::uint64_t, kRounds> keys_;
};

}  // namespace antdt
