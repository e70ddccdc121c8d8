#include "shard_server/ledger/interval_set.h"

#include <algorithm>

namespace antdt::shard_server {

IntervalSet::Map::const_iterator IntervalSet::first_ending_after(std::uint64_t position) const {
  auto it = intervals_.upper_bound(position);
  if (it != intervals_.begin() && std::prev(it)->second > position) --it;
  return it;
}

void IntervalSet::add(Interval interval) {
  if (interval.empty()) return;
  // The interval before may touch or overlap this one.
  auto it = intervals_.upper_bound(interval.from);
  if (it != intervals_.begin() && std::prev(it)->second >= interval.from) {
    --it;
    if (it->second >= interval.to) return;
    // Grows in place, because commits mostly arrive in order.
    size_ -= it->second - it->first;
    interval.from = it->first;
    it->second = interval.to;
  } else {
    it = intervals_.emplace_hint(it, interval.from, interval.to);
  }
  for (auto next = std::next(it); next != intervals_.end() && next->first <= it->second;) {
    size_ -= next->second - next->first;
    it->second = std::max(it->second, next->second);
    next = intervals_.erase(next);
  }
  size_ += it->second - it->first;
}

void IntervalSet::remove(Interval interval) {
  for (const Interval part : inside(interval)) {
    const auto it = std::prev(intervals_.upper_bound(part.from));
    const Interval whole{it->first, it->second};
    intervals_.erase(it);
    if (whole.from < part.from) intervals_.emplace(whole.from, part.from);
    if (part.to < whole.to) intervals_.emplace(part.to, whole.to);
    size_ -= part.size();
  }
}

std::vector<Interval> IntervalSet::inside(Interval interval) const {
  std::vector<Interval> parts;
  if (interval.empty()) return parts;
  for (auto it = first_ending_after(interval.from);
       it != intervals_.end() && it->first < interval.to; ++it) {
    parts.push_back({std::max(it->first, interval.from), std::min(it->second, interval.to)});
  }
  return parts;
}

std::vector<Interval> IntervalSet::outside(Interval interval) const {
  std::vector<Interval> parts;
  for (const Interval taken : inside(interval)) {
    if (interval.from < taken.from) parts.push_back({interval.from, taken.from});
    interval.from = taken.to;
  }
  if (!interval.empty()) parts.push_back(interval);
  return parts;
}

std::vector<Interval> IntervalSet::intervals() const {
  std::vector<Interval> all;
  all.reserve(intervals_.size());
  for (const auto& [from, to] : intervals_) all.push_back({from, to});
  return all;
}

std::uint64_t total_size(const std::vector<Interval>& intervals) {
  std::uint64_t sum = 0;
  for (const Interval& interval : intervals) sum += interval.size();
  return sum;
}

}  // namespace antdt::shard_server
