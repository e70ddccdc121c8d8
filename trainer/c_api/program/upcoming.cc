#include "trainer/c_api/program/upcoming.h"

#include <algorithm>

namespace antdt::capi {

void Upcoming::begin(Generation generation, std::uint64_t phase) {
  const std::lock_guard lock(mutex_);
  generation_ = generation;
  phase_ = phase;
  open_ = true;
  given_ = 0;
  records_.clear();
  changed_.notify_all();
}

void Upcoming::end() {
  const std::lock_guard lock(mutex_);
  open_ = false;
  records_.clear();
  changed_.notify_all();
}

void Upcoming::add(std::span<const std::uint64_t> records) {
  const std::lock_guard lock(mutex_);
  if (!open_) return;
  records_.insert(records_.end(), records.begin(), records.end());
  changed_.notify_all();
}

std::uint64_t Upcoming::give(std::uint64_t records) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t first = given_;
  given_ += records;
  const auto gone = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(records, records_.size()));
  records_.erase(records_.begin(), records_.begin() + gone);
  return first;
}

std::optional<std::uint64_t> Upcoming::tell(Generation generation, std::uint64_t phase,
                                            std::uint64_t& from, std::span<std::uint64_t> records,
                                            Duration timeout) {
  std::unique_lock lock(mutex_);
  const auto here = [&] { return open_ && generation == generation_ && phase == phase_; };
  const auto first = [&] { return std::max(from, given_); };
  const auto there = [&] { return first() < given_ + records_.size(); };
  changed_.wait_for(lock, timeout, [&] { return !here() || there(); });
  if (!here()) return {};
  if (!there()) return 0;
  from = first();
  const std::uint64_t skip = from - given_;
  const std::uint64_t count = std::min<std::uint64_t>(records.size(), records_.size() - skip);
  std::copy_n(records_.begin() + static_cast<std::ptrdiff_t>(skip), count, records.begin());
  return count;
}

Status RecordNumbers::read(std::span<const std::uint64_t> numbers, data::Examples& out) {
  out.clear();
  out.count = numbers.size();
  out.ids.assign(numbers.begin(), numbers.end());
  upcoming_.add(numbers);
  return {};
}

}  // namespace antdt::capi
