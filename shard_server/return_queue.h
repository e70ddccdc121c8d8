// Ranges that were given back, to be handed out next.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "shard_server/events.h"
#include "shard_server/interval_set.h"

namespace antdt::shard_server {

// Lowest position first. Neighbours with the same number of retries coalesce.
// Value type.
class ReturnQueue {
 public:
  // `range` must not overlap what is there.
  void add(Range range);
  // Takes out what is there of `interval`.
  void remove(Interval interval);

  [[nodiscard]] std::uint64_t size() const { return size_; }  // records
  // The first `max_records` records, in at most `max_ranges` ranges.
  [[nodiscard]] std::vector<Range> front(std::uint64_t max_records, std::size_t max_ranges) const;
  [[nodiscard]] bool holds(Interval interval) const;  // all of it
  [[nodiscard]] std::vector<Range> ranges() const;

 private:
  struct Entry {
    std::uint64_t to = 0;
    std::uint32_t retries = 0;
  };
  std::map<std::uint64_t, Entry> entries_;  // by from
  std::uint64_t size_ = 0;
};

}  // namespace antdt::shard_server
