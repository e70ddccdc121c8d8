#include "ctl/lifecycle/state/checkpoint_orders.h"

#include <algorithm>
#include <utility>

namespace antdt::ctl {
namespace {

// How long it may take until a member reports that it writes a checkpoint.
constexpr Duration kCheckpointPatience = std::chrono::minutes(5);

}  // namespace

std::uint64_t CheckpointOrders::order(MonoTime now) {
  ordered_at_ = now;
  image_.pending = true;
  return ++image_.ordered;
}

CheckpointOrders::Answer CheckpointOrders::answered(std::uint64_t number) {
  const bool was_begun = being_written_ != 0 && number == being_written_;
  if (was_begun) being_written_ = 0;
  // Storing takes time, so an earlier order may be answered while a later one is waited for.
  const bool is_earlier = number < image_.ordered;
  if (!is_earlier) image_.pending = false;
  return {was_begun, is_earlier};
}

void CheckpointOrders::stored(std::uint64_t number) {
  image_.stored = std::max(image_.stored, number);
  image_.ordered = std::max(image_.ordered, number);
  error_.clear();
}

bool CheckpointOrders::failed(const std::string& error) {
  return std::exchange(error_, error) != error;
}

Duration CheckpointOrders::quiet_for(MonoTime now) const {
  return now - std::max(ordered_at_, moved_at_);
}

bool CheckpointOrders::seems_lost(MonoTime now) const {
  return being_written_ == 0 && quiet_for(now) >= kCheckpointPatience;
}

}  // namespace antdt::ctl
