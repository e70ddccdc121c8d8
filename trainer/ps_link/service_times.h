// How long requests took, since the last query.
#pragma once

#include <cstddef>
#include <vector>

#include "core/clock.h"

namespace antdt::ps {

class ServiceTimes {
 public:
  static constexpr std::size_t kKept = 1U << 16;  // the newest

  void add(Duration took);
  struct Percentiles {  // in microseconds; 0 without requests
    double p50 = 0;
    double p99 = 0;
  };
  // Of the requests since the last call.
  [[nodiscard]] Percentiles take();

 private:
  std::vector<Duration> kept_;
  std::size_t next_ = 0;  // index that is overwritten next, once it is full
};

}  // namespace antdt::ps
