#include "trainer/tally/recent_counts.h"

#include <algorithm>
#include <utility>

namespace antdt::trainer {

template <class F>
void RecentCounts::unite(std::span<const Entry> other, F both) {
  const auto place = [](const Entry& entry) { return std::pair(entry.counter, entry.member); };
  std::vector<Entry> all;
  all.reserve(entries_.size() + other.size());
  auto mine = entries_.begin();
  for (const Entry& entry : other) {
    while (mine != entries_.end() && place(*mine) < place(entry)) all.push_back(*mine++);
    const bool same = mine != entries_.end() && place(*mine) == place(entry);
    all.push_back(entry);
    if (same) all.back().count = both((mine++)->count, entry.count);
  }
  all.insert(all.end(), mine, entries_.end());
  entries_ = std::move(all);
}

void RecentCounts::add(std::span<const Entry> counted) {
  unite(counted, [](std::uint32_t before, std::uint32_t more) { return before + more; });
}

void RecentCounts::merge(std::span<const Entry> other) {
  unite(other, [](std::uint32_t mine, std::uint32_t others) { return std::max(mine, others); });
}

}  // namespace antdt::trainer
