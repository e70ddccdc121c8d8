// Sets of record positions, kept as intervals; neighbouring intervals are merged.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace antdt::shard_server {

// Positions [from, to).
struct Interval {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  [[nodiscard]] std::uint64_t size() const { return to - from; }
  [[nodiscard]] bool empty() const { return from >= to; }
  bool operator==(const Interval&) const = default;
};

// Value type. Every operation costs O(log intervals + intervals touched).
class IntervalSet {
 public:
  void add(Interval interval);
  void remove(Interval interval);

  [[nodiscard]] std::uint64_t size() const { return size_; }  // number of positions
  [[nodiscard]] bool empty() const { return size_ == 0; }
  // The parts of `interval` that are in the set, and those that are not.
  [[nodiscard]] std::vector<Interval> inside(Interval interval) const;
  [[nodiscard]] std::vector<Interval> outside(Interval interval) const;
  // All intervals of the set, rising.
  [[nodiscard]] std::vector<Interval> intervals() const;

  bool operator==(const IntervalSet&) const = default;

 private:
  using Map = std::map<std::uint64_t, std::uint64_t>;  // from -> to
  // The first interval that ends after `position`.
  [[nodiscard]] Map::const_iterator first_ending_after(std::uint64_t position) const;

  Map intervals_;
  std::uint64_t size_ = 0;
};

[[nodiscard]] std::uint64_t total_size(const std::vector<Interval>& intervals);

}  // namespace antdt::shard_server
