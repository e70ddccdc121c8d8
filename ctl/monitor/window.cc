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

BatchSums operator-(const BatchSums& a, const BatchSums& b) {
  return {a.batches - b.batches, a.samples - b.samples, a.data_us - b.data_us,
          a.compute_us - b.compute_us, a.wait_us - b.wait_us};
}

SlidingWindow::SlidingWindow(Duration span, std::size_t buckets)
    : width_(std::max(span / static_cast<std::int64_t>(std::max<std::size_t>(buckets, 2)),
                      Duration(1))),
      ring_(std::max<std::size_t>(buckets, 2) + 1),
      newest_(INT64_MIN) {
  ANTDT_CHECK(span > Duration::zero(), "a window of {} ns", span.count());
}

std::int64_t SlidingWindow::index_of(MonoTime time) const {
  return time.time_since_epoch() / width_;
}

const BatchSums& SlidingWindow::until_end_of(std::int64_t bucket) const {
  // The one before the clock's zero is asked for, too.
  const auto size = static_cast<std::int64_t>(ring_.size());
  return ring_[static_cast<std::size_t>((bucket + size) % size)];
}

BatchSums SlidingWindow::sum_from(std::int64_t first) const {
  if (first > newest_) return {};
  return until_end_of(newest_) - until_end_of(std::max(first, first_) - 1);
}

void SlidingWindow::add(const BatchSums& sums, MonoTime now) {
  const auto size = static_cast<std::int64_t>(ring_.size());
  const std::int64_t index = std::max(index_of(now), newest_);
  if (newest_ == INT64_MIN) {
    newest_ = index;
    first_ = index;
  }
  const BatchSums total = until_end_of(newest_);
  for (std::int64_t i = std::max(newest_ + 1, index - size + 1); i <= index; ++i) {
    ring_[static_cast<std::size_t>(i % size)] = total;
  }
  newest_ = index;
  // No bucket before the oldest that is remembered is looked at again.
  first_ = std::max(first_, index - size + 2);
  ring_[static_cast<std::size_t>(index % size)] += sums;
}

BatchSums SlidingWindow::sum(Duration length, MonoTime now) const {
  return at_least(0, length, now).sums;
}

SlidingWindow::Stretch SlidingWindow::at_least(std::uint64_t batches, Duration length,
                                               MonoTime now) const {
  if (newest_ == INT64_MIN) return {{}, now};
  const auto remembered = static_cast<std::int64_t>(ring_.size()) - 1;
  const std::int64_t head = std::max(index_of(now), newest_);
  const std::int64_t oldest = std::max<std::int64_t>(head - remembered + 1, 0);
  // The bucket that `now` is in is not full yet: it comes on top of `length`.
  const std::int64_t wanted = std::max(head - std::max<std::int64_t>(length / width_, 1), oldest);
  if (oldest > newest_) return {{}, now};
  // The last bucket from which on there are enough batches, if that is not within `length`.
  std::int64_t begin = std::min(wanted, newest_ + 1);
  if (sum_from(begin).batches < batches) {
    std::int64_t enough = oldest;  // or all that there is
    std::int64_t too_few = begin;
    while (too_few - enough > 1) {
      const std::int64_t middle = enough + (too_few - enough) / 2;
      (sum_from(middle).batches >= batches ? enough : too_few) = middle;
    }
    begin = enough;
  }
  return {sum_from(begin), begin > newest_ ? now : MonoTime(width_ * begin)};
}

void SlidingWindow::forget_before(MonoTime time) {
  if (newest_ == INT64_MIN) return;
  const std::int64_t end = index_of(time);
  if (end > newest_) {
    // Nothing is left, and the newest bucket begins anew.
    ring_.assign(ring_.size(), {});
    first_ = newest_;
    return;
  }
  first_ = std::max(first_, end);
}

Duration SlidingWindow::span() const {
  return width_ * (static_cast<std::int64_t>(ring_.size()) - 1);
}

}  // namespace antdt::ctl
