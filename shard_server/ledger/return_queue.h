// Ranges that were given back, to be handed out next.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "shard_server/ledger/interval_set.h"
#include "shard_server/ledger/records.h"

namespace antdt::shard_server {

// Lowest position first. Neighbours that are alike coalesce. Value type.
//
// What came too late of a worker is to be another one's. Who that was is not in an
// image: it says who gets records, not what becomes of them.
class ReturnQueue {
 public:
  // `range` must not overlap what is there.
  void add(Range range, std::optional<WorkerId> late_of = {});
  // Takes out what is there of `interval`.
  void remove(Interval interval);

  [[nodiscard]] std::uint64_t size() const { return size_; }  // records
  // Of those that came too late of this worker.
  [[nodiscard]] std::uint64_t late_of(WorkerId worker) const;
  // The first `max_records` records, in at most `max_ranges` ranges; none that came too
  // late of `but_of`.
  [[nodiscard]] std::vector<Range> front(std::uint64_t max_records, std::size_t max_ranges,
                                         std::optional<WorkerId> but_of = {}) const;
  [[nodiscard]] bool holds(Interval interval) const;  // all of it
  // Whoever they came too late of.
  [[nodiscard]] std::vector<Range> ranges() const;

 private:
  struct Entry {
    std::uint64_t to = 0;
    std::uint32_t retries = 0;
    std::optional<WorkerId> late_of;
    [[nodiscard]] bool is_like(const Entry& other) const {
      return retries == other.retries && late_of == other.late_of;
    }
  };
  std::map<std::uint64_t, Entry> entries_;  // by from
  std::uint64_t size_ = 0;
  std::map<WorkerId, std::uint64_t> late_;  // records
};

}  // namespace antdt::shard_server
