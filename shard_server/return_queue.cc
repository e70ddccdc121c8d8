#include "shard_server/return_queue.h"

#include <algorithm>

#include "core/check.h"

namespace antdt::shard_server {

void ReturnQueue::add(Range range) {
  if (range.at.empty()) return;
  size_ += range.at.size();
  auto next = entries_.lower_bound(range.at.from);
  ANTDT_CHECK(next == entries_.end() || next->first >= range.at.to,
              "[{}, {}) is given back, and so is [{}, {})", range.at.from, range.at.to, next->first,
              next->second.to);
  if (next != entries_.begin()) {
    const auto before = std::prev(next);
    ANTDT_CHECK(before->second.to <= range.at.from, "[{}, {}) is given back, and so is [{}, {})",
                range.at.from, range.at.to, before->first, before->second.to);
    if (before->second.to == range.at.from && before->second.retries == range.retries) {
      range.at.from = before->first;
      entries_.erase(before);
    }
  }
  if (next != entries_.end() && next->first == range.at.to &&
      next->second.retries == range.retries) {
    range.at.to = next->second.to;
    entries_.erase(next);
  }
  entries_[range.at.from] = {range.at.to, range.retries};
}

void ReturnQueue::remove(Interval interval) {
  auto it = entries_.upper_bound(interval.from);
  if (it != entries_.begin()) --it;
  while (it != entries_.end() && it->first < interval.to) {
    const auto [from, entry] = *it;
    if (entry.to <= interval.from) {
      ++it;
      continue;
    }
    it = entries_.erase(it);
    size_ -= std::min(entry.to, interval.to) - std::max(from, interval.from);
    if (from < interval.from) entries_[from] = {interval.from, entry.retries};
    if (interval.to < entry.to) entries_[interval.to] = entry;
  }
}

std::vector<Range> ReturnQueue::front(std::uint64_t max_records, std::size_t max_ranges) const {
  std::vector<Range> front;
  for (const auto& [from, entry] : entries_) {
    if (max_records == 0 || front.size() == max_ranges) break;
    const std::uint64_t take = std::min(max_records, entry.to - from);
    front.push_back({{from, from + take}, entry.retries});
    max_records -= take;
  }
  return front;
}

bool ReturnQueue::holds(Interval interval) const {
  auto it = entries_.upper_bound(interval.from);
  if (it == entries_.begin()) return interval.empty();
  for (--it; interval.from < interval.to; ++it) {
    if (it == entries_.end() || it->first > interval.from || it->second.to <= interval.from) {
      return false;
    }
    interval.from = it->second.to;
  }
  return true;
}

std::vector<Range> ReturnQueue::ranges() const { return front(UINT64_MAX, entries_.size()); }

}  // namespace antdt::shard_server
