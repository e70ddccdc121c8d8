// The records of the open phase that nobody holds: those ahead of the cursor, which were never
// granted, and those that were given back. What an operator lets the job skip is neither.
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
  // Records that may be granted.
  [[nodiscard]] std::uint64_t ungranted() const {
    return returned_.size() + (stream_.size() - cursor_ - skips_ahead_);
  }
  [[nodiscard]] std::uint64_t returned() const { return returned_.size(); }
  // Returned records that came too late of this worker, and are to be another one's.
  [[nodiscard]] std::uint64_t late_of(WorkerId worker) const { return returned_.late_of(worker); }
  // The next records to grant, as long as one message can hold them; none that came too late of
  // `but_of`.
  [[nodiscard]] std::vector<Range> next(std::uint64_t records,
                                        std::optional<WorkerId> but_of) const;
  // Whether all of these can be granted, one after the other; the error names the first that not.
  [[nodiscard]] Status check_free(const std::vector<Range>& ranges, WorkerId to) const;
  // Removes what nobody has trained from `trained`: what may be granted, and what was left out.
  void remove_untrained(IntervalSet& trained) const;

  void take(Interval interval);
  void give_back(Range range, std::optional<WorkerId> late_of = {});
  // Declared: nobody is granted these any more. Who holds some of them goes on.
  void skip(Interval interval);

 private:
  friend class LedgerImage;
  // Whether a grant continues where the stream was granted up to `cursor`, but for what is skipped.
  [[nodiscard]] bool is_next(Interval at, std::uint64_t cursor) const;
  void leave_out(Interval skipped);

  EpochStream stream_{DataSet{}, Epoch{}, PhaseKind::kTrain};
  std::uint64_t cursor_ = 0;  // positions from here on were never granted
  ReturnQueue returned_;
  IntervalSet skips_;  // declared for this phase
  // Of them those that nobody trains any more. The others were committed before, or are held by
  // somebody and may yet be committed.
  IntervalSet left_out_;
  std::uint64_t skips_ahead_ = 0;  // declared positions from the cursor on; follows from the above
};

}  // namespace antdt::shard_server
