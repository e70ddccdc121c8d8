#include "shard_server/ledger/return_queue.h"

#include <algorithm>

#include "core/check.h"

namespace antdt::shard_server {

void ReturnQueue::add(Range range, std::optional<WorkerId> late_of) {
  if (range.at.empty()) return;
  size_ += range.at.size();
  if (late_of) late_[*late_of] += range.at.size();
  Entry entry{range.at.to, range.retries, late_of};
  auto next = entries_.lower_bound(range.at.from);
  ANTDT_CHECK(next == entries_.end() || next->first >= range.at.to,
              "[{}, {}) is given back, and so is [{}, {})", range.at.from, range.at.to, next->first,
              next->second.to);
  if (next != entries_.begin()) {
    const auto before = std::prev(next);
    ANTDT_CHECK(before->second.to <= range.at.from, "[{}, {}) is given back, and so is [{}, {})",
                range.at.from, range.at.to, before->first, before->second.to);
    if (before->second.to == range.at.from && before->second.is_like(entry)) {
      range.at.from = before->first;
      entries_.erase(before);
    }
  }
  if (next != entries_.end() && next->first == range.at.to && next->second.is_like(entry)) {
    entry.to = next->second.to;
    entries_.erase(next);
  }
  entries_[range.at.from] = entry;
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
    const std::uint64_t removed = std::min(entry.to, interval.to) - std::max(from, interval.from);
    size_ -= removed;
    if (entry.late_of && (late_.at(*entry.late_of) -= removed) == 0) late_.erase(*entry.late_of);
    if (from < interval.from) entries_[from] = {interval.from, entry.retries, entry.late_of};
    if (interval.to < entry.to) entries_[interval.to] = entry;
  }
}

std::uint64_t ReturnQueue::late_of(WorkerId worker) const {
  const auto found = late_.find(worker);
  return found == late_.end() ? 0 : found->second;
}

std::vector<Range> ReturnQueue::front(std::uint64_t max_records, std::size_t max_ranges,
                                      std::optional<WorkerId> but_of) const {
  std::vector<Range> front;
  for (const auto& [from, entry] : entries_) {
    if (max_records == 0 || front.size() == max_ranges) break;
    if (but_of && entry.late_of == but_of) continue;
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

std::vector<Range> ReturnQueue::ranges() const {
  std::vector<Range> ranges;
  for (const auto& [from, entry] : entries_) {
    if (!ranges.empty() && ranges.back().at.to == from && ranges.back().retries == entry.retries) {
      ranges.back().at.to = entry.to;
    } else {
      ranges.push_back({{from, entry.to}, entry.retries});
    }
  }
  return ranges;
}

}  // namespace antdt::shard_server
