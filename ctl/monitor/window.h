// Sums over the last so many seconds.
//
// A ring of time buckets, each of which holds the sum of all that was added until its end: adding
// is O(1) amortised, a sum is a difference of two buckets, and where a stretch begins is found by
// bisection. A window is therefore exact to one bucket's width. Value type; time must not go back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/clock.h"

namespace antdt::ctl {

// What workers measured, added up. Times in microseconds.
struct BatchSums {
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t data_us = 0;
  std::uint64_t compute_us = 0;
  std::uint64_t wait_us = 0;

  BatchSums& operator+=(const BatchSums& other);
  friend BatchSums operator-(const BatchSums& a, const BatchSums& b);
  [[nodiscard]] std::uint64_t busy_us() const { return data_us + compute_us; }
};

class SlidingWindow {
 public:
  // Remembers `span`, in `buckets` buckets (at least 2).
  SlidingWindow(Duration span, std::size_t buckets);

  void add(const BatchSums& sums, MonoTime now);
  // The sum of what was added in (now - length, now]; `length` is cut to the span.
  [[nodiscard]] BatchSums sum(Duration length, MonoTime now) const;
  struct Stretch {
    BatchSums sums;
    MonoTime from{};  // where its oldest bucket begins
  };
  // The newest buckets that hold `batches` batches, at least `length` and at
  // most the whole span of them.
  [[nodiscard]] Stretch at_least(std::uint64_t batches, Duration length, MonoTime now) const;
  // Forgets the buckets that end before or at `time`.
  void forget_before(MonoTime time);

  [[nodiscard]] Duration span() const;

 private:
  [[nodiscard]] std::int64_t index_of(MonoTime time) const;
  [[nodiscard]] const BatchSums& until_end_of(std::int64_t bucket) const;
  // Of the buckets from `first` to the newest.
  [[nodiscard]] BatchSums sum_from(std::int64_t first) const;

  Duration width_;
  // One more than the buckets that it remembers: the last of those before them is subtracted.
  std::vector<BatchSums> ring_;
  std::int64_t newest_;     // number of the newest bucket since the clock's zero
  std::int64_t first_ = 0;  // what is in the buckets before it is forgotten
};

}  // namespace antdt::ctl
