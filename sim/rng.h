// Randomness that follows only from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/clock.h"
#include "core/permutation.h"

namespace antdt::sim {

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(mix64(seed)) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    return mix64(state_);
  }
  // In [0, n); 0 for n = 0.
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : next() % n; }
  // In [from, to].
  std::uint64_t between(std::uint64_t from, std::uint64_t to) {
    return from + below(to - from + 1);
  }
  bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1.0p-53 < p; }
  Duration time(Duration from, Duration to) {
    return from + Duration(static_cast<Duration::rep>(
                      below(static_cast<std::uint64_t>((to - from).count()) + 1)));
  }
  template <class T>
  T& pick(std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  std::uint64_t state_;
};

}  // namespace antdt::sim
