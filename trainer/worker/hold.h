// How many records a worker in a training phase keeps in hand. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "core/clock.h"

namespace antdt::worker {

// Several seconds of work by the speed measured, so that the job daemon may be
// away; what is held can only be trained here, so a first guess stays small.
class Hold {
 public:
  // A phase begins at place 0. Answers the hold, as the others do.
  [[nodiscard]] std::uint64_t begin(std::uint64_t batch, MonoTime now);
  // After a batch, with the place reached: a new hold now and then.
  [[nodiscard]] std::optional<std::uint64_t> update(std::uint64_t place, std::uint64_t batch,
                                                    MonoTime now);
  // The batch is another from now on.
  [[nodiscard]] std::uint64_t set(std::uint64_t place, std::uint64_t batch, MonoTime now);

 private:
  MonoTime updated_{};
  std::uint64_t place_ = 0;  // then
};

}  // namespace antdt::worker
