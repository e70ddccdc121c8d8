// Ranges that were given back, to be granted next.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "shard_server/ledger/interval_set.h"
#include "shard_server/ledger/records.h"

namespace antdt::shard_server {

// Ordered by position, the lowest first. Neighbouring ranges with equal attributes are merged.
// Value type.
//
// Records that came too late of one worker are meant for another one. The image does not store
// whose they were, because that affects who gets a record and not what becomes of it.
class ReturnQueue {
 public:
  // `range` must not overlap a range that is in the queue.
  void add(Range range, std::optional<WorkerId> late_of = {});
  // Removes the part of the queue that lies in `interval`.
  void remove(Interval interval);

  [[nodiscard]] std::uint64_t size() const { return size_; }  // number of records
  // Records that came too late of this worker.
  [[nodiscard]] std::uint64_t late_of(WorkerId worker) const;
  // The first `max_records` records, in at most `max_ranges` ranges, without those that came too
  // late of `but_of`.
  [[nodiscard]] std::vector<Range> front(std::uint64_t max_records, std::size_t max_ranges,
                                         std::optional<WorkerId> but_of = {}) const;
  [[nodiscard]] bool holds(Interval interval) const;  // whether all of it is in the queue
  // All ranges, whichever worker was late with them.
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
  std::map<std::uint64_t, Entry> entries_;  // by the first position
  std::uint64_t size_ = 0;
  std::map<WorkerId, std::uint64_t> late_;  // number of late records of each worker
};

}  // namespace antdt::shard_server
