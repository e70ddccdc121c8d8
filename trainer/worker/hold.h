// How many records a worker in a training phase should hold. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "core/clock.h"

namespace antdt::worker {

// Several seconds of work at the measured speed, so that the job daemon may be away. Held records
// can only be trained by this worker, so the first guess is small.
class Hold {
 public:
  // A phase begins at place 0. Returns the hold, as the other functions do.
  [[nodiscard]] std::uint64_t begin(std::uint64_t batch, MonoTime now);
  // After a batch, with the place that was reached: returns a new hold now and then.
  [[nodiscard]] std::optional<std::uint64_t> update(std::uint64_t place, std::uint64_t batch,
                                                    MonoTime now);
  // From now on the batch has another size.
  [[nodiscard]] std::uint64_t set(std::uint64_t place, std::uint64_t batch, MonoTime now);

 private:
  MonoTime updated_{};
  std::uint64_t place_ = 0;  // at that time
};

}  // namespace antdt::worker
