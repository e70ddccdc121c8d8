// The records of the open phase that nobody holds: those ahead of the cursor, which were never
// granted, and those that were given back. Records that an operator lets the job skip are neither.
//
// A value, a part of the ledger's state. Everything in it is durable.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "shard_server/ledger/interval_set.h"
#include "shard_server/ledger/records.h"
#include "shard_server/ledger/return_queue.h"
#include "shard_server/ledger/stream.h"

namespace antdt::shard_server {

class Supply {
 public:
  Supply() = default;
  explicit Supply(EpochStream stream) : stream_(stream) {}

  [[nodiscard]] const EpochStream& stream() const { return stream_; }
  [[nodiscard]] std::uint64_t cursor() const { return cursor_; }
  // How many records may be granted.
  [[nodiscard]] std::uint64_t ungranted() const {
    return returned_.size() + (stream_.size() - cursor_ - skips_ahead_);
  }
  [[nodiscard]] std::uint64_t returned() const { return returned_.size(); }
  // Returned records that came too late of this worker and are meant for another one.
  [[nodiscard]] std::uint64_t late_of(WorkerId worker) const { return returned_.late_of(worker); }
  // The next records to grant, no more than one message can hold, without those that came too late
  // of `but_of`.
  [[nodiscard]] std::vector<Range> next(std::uint64_t records,
                                        std::optional<WorkerId> but_of) const;
  // Whether all of these can be granted, one after the other. The error names the first that
  // cannot.
  [[nodiscard]] Status check_free(const std::vector<Range>& ranges, WorkerId to) const;
  // Removes from `trained` what nobody has trained: what may be granted, and what was left out.
  void remove_untrained(IntervalSet& trained) const;

  void take(Interval interval);
  void give_back(Range range, std::optional<WorkerId> late_of = {});
  // Declares these positions as skipped: nobody is granted them any more. A worker that holds some
  // of them goes on with them.
  void skip(Interval interval);

 private:
  friend class LedgerImage;
  // Whether a grant begins where the stream was granted up to `cursor`, skipped positions aside.
  [[nodiscard]] bool is_next(Interval at, std::uint64_t cursor) const;
  void leave_out(Interval skipped);

  EpochStream stream_{DataSet{}, Epoch{}, PhaseKind::kTrain};
  std::uint64_t cursor_ = 0;  // positions from here on were never granted
  ReturnQueue returned_;
  IntervalSet skips_;  // positions declared as skipped in this phase
  // The skipped positions that nobody trains any more. The others were committed before, or
  // somebody holds them and may still commit them.
  IntervalSet left_out_;
  // how many declared positions lie at the cursor or after it; computed from the above
  std::uint64_t skips_ahead_ = 0;
};

}  // namespace antdt::shard_server
