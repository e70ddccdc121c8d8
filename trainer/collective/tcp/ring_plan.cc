#include "trainer/collective/tcp/ring_plan.h"

#include <algorithm>

namespace antdt::trainer {

RingPlan::RingPlan(std::uint32_t rank, std::uint32_t size, std::size_t elements,
                   std::size_t max_segment)
    : rank_(rank), size_(size), elements_(elements) {
  const std::size_t block = (elements + size_ - 1) / size_;
  segments_ = std::max<std::size_t>(1, (block + max_segment - 1) / max_segment);
}

// In round t, rank r passes on block r - t, which it completed in round t - 1. The first round of
// the all-gather follows the same rule.
RingPlan::Range RingPlan::sent(std::size_t operation) const {
  const std::size_t round = operation / segments_;
  return segment((rank_ + 2 * size_ - round) % size_, operation % segments_);
}

RingPlan::Range RingPlan::received(std::size_t operation) const {
  const std::size_t round = operation / segments_;
  return segment((rank_ + 2 * size_ - round - 1) % size_, operation % segments_);
}

bool RingPlan::adds(std::size_t operation) const { return operation / segments_ < size_ - 1; }

RingPlan::Range RingPlan::segment(std::size_t block, std::size_t index) const {
  const std::size_t from = elements_ * block / size_;
  const std::size_t to = elements_ * (block + 1) / size_;
  const std::size_t count = to - from;
  const std::size_t first = count * index / segments_;
  return {from + first, count * (index + 1) / segments_ - first};
}

}  // namespace antdt::trainer
