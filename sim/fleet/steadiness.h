// Whether enough was measured of the workers of a run to simulate it. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "shard_server/history/series.h"

namespace antdt::fleet {

struct Steadiness {
  // The worker whose speed is known least well, and the standard error of the median of its seconds
  // for a sample, relative to it. 1: too little was reported to tell.
  std::string worker;
  double error = 1;
  // A run has been measured enough if the error is at most this.
  static constexpr double kEnough = 0.02;
  [[nodiscard]] bool enough() const { return error <= kEnough; }
};
// The first seconds of a worker do not count, because it warms up.
[[nodiscard]] Steadiness steadiness_of(const shard_server::Series& series, std::uint32_t workers);

}  // namespace antdt::fleet
