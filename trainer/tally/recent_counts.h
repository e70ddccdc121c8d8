// What a replica of the tally has counted since all replicas were equal, where they may differ
// (docs/synchronisation). Pure.
//
// Each entry is what one member has counted in one counter; only that member adds to it. So of two
// replicas that both have the entry, the larger count contains the other one, and merging replicas
// takes it: no update is lost, and one that is in both is not counted twice. But a record that two
// members have trained, or one member in two steps, is counted twice (this is a grow-only counter,
// Shapiro et al., "Conflict-free Replicated Data Types", 2011).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace antdt::trainer {

class RecentCounts {
 public:
  struct Entry {
    std::uint32_t counter = 0;
    std::uint32_t member = 0;  // its rank
    std::uint32_t count = 0;
    auto operator<=>(const Entry&) const = default;
  };

  // `member` counts: one entry for each counter, ascending. Adds to what it counted before.
  void add(std::span<const Entry> counted);
  // Takes up what another replica contains.
  void merge(std::span<const Entry> other);
  void clear() { entries_.clear(); }

  // By counter, then member.
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

 private:
  template <class F>
  void unite(std::span<const Entry> other, F both);
  std::vector<Entry> entries_;
};

}  // namespace antdt::trainer
