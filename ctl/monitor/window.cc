#include "ctl/monitor/window.h"

#include <algorithm>

#include "core/check.h"

namespace antdt::ctl {

BatchSums& BatchSums::operator+=(const BatchSums& other) {
  batches += other.batches;
  samples += other.samples;
  data_us += other.data_us;
  compute_us += other.compute_us;
  wait_us += other.wait_us;
  return *this;
}

SlidingWindow::SlidingWindow(Duration span, std::size_t buckets)
    : width_(std::max(span / static_cast<std::int64_t>(std::max<std::size_t>(buckets, 2)),
                      Duration(1))),
      ring_(std::max<std::size_t>(buckets, 2)),
      newest_(INT64_MIN) {
  ANTDT_CHECK(span > Duration::zero(), "a window of {} ns", span.count());
}

std::int64_t SlidingWindow::index_of(MonoTime time) const {
  return time.time_since_epoch() / width_;
}

void SlidingWindow::add(const BatchSums& sums, MonoTime now) {
  const auto size = static_cast<std::int64_t>(ring_.size());
  const std::int64_t index = std::max(index_of(now), newest_);
  if (newest_ == INT64_MIN || index - newest_ >= size) {
    std::fill(ring_.begin(), ring_.end(), BatchSums{});
  } else {
    for (std::int64_t i = newest_ + 1; i <= index; ++i)
      ring_[static_cast<std::size_t>(i % size)] = {};
  }
  newest_ = index;
  ring_[static_cast<std::size_t>(index % size)] += sums;
}

BatchSums SlidingWindow::sum(Duration length, MonoTime now) const {
  return at_least(0, length, now).sums;
}

SlidingWindow::Stretch SlidingWindow::at_least(std::uint64_t batches, Duration length,
                                               MonoTime now) const {
  Stretch result{{}, now};
  if (newest_ == INT64_MIN) return result;
  const auto size = static_cast<std::int64_t>(ring_.size());
  const std::int64_t head = std::max(index_of(now), newest_);
  // The bucket that `now` is in is not full yet: it comes on top of `length`.
  const std::int64_t wanted = head - std::max<std::int64_t>(length / width_, 1);
  const std::int64_t oldest = std::max<std::int64_t>(head - size + 1, 0);
  for (std::int64_t i = newest_; i >= oldest; --i) {
    if (i < wanted && result.sums.batches >= batches) break;
    result.sums += ring_[static_cast<std::size_t>(i % size)];
    result.from = MonoTime(width_ * i);
  }
  return result;
}

void SlidingWindow::forget_before(MonoTime time) {
  if (newest_ == INT64_MIN) return;
  const auto size = static_cast<std::int64_t>(ring_.size());
  const std::int64_t end = std::min(index_of(time), newest_ + 1);
  for (std::int64_t i = std::max<std::int64_t>(newest_ - size + 1, 0); i < end; ++i) {
    ring_[static_cast<std::size_t>(i % size)] = {};
  }
}

Duration SlidingWindow::span() const { return width_ * static_cast<std::int64_t>(ring_.size()); }

}  // namespace antdt::ctl
