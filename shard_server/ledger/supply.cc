#include "shard_server/ledger/supply.h"

#include <algorithm>

namespace antdt::shard_server {
namespace {

// Bounds of one answer, so that no message is large.
constexpr std::uint64_t kMaxPieces = 1024;
constexpr std::size_t kMaxReturnedRanges = 256;

}  // namespace

std::vector<Range> Supply::next(std::uint64_t records, std::optional<WorkerId> but_of) const {
  std::uint64_t pieces = kMaxPieces;
  std::vector<Range> chosen;
  const auto choose = [&](Range range) {
    if (records == 0 || pieces == 0) return;
    range.at.to = std::min(range.at.to, range.at.from + records);
    range.at.to = std::min(range.at.to, stream_.reach(range.at.from, pieces));
    records -= range.at.size();
    pieces -= stream_.shards_in(range.at);
    chosen.push_back(range);
  };
  if (returned_.size() > 0) {
    for (const Range& range : returned_.front(records, kMaxReturnedRanges, but_of)) choose(range);
    // The order is that of the stream: records ahead of the cursor follow only after all returned
    // ones.
    if (chosen.size() == kMaxReturnedRanges) return chosen;
  }
  if (records == 0 || pieces == 0 || cursor_ == stream_.size()) return chosen;
  if (skips_ahead_ == 0) {
    choose({{cursor_, stream_.size()}, 0});
  } else {
    for (const Interval part : skips_.outside({cursor_, stream_.size()})) choose({part, 0});
  }
  return chosen;
}

bool Supply::is_next(Interval at, std::uint64_t cursor) const {
  return at.from >= cursor && at.to <= stream_.size() &&
         skips_.outside({cursor, at.from}).empty() && skips_.inside(at).empty();
}

Status Supply::check_free(const std::vector<Range>& ranges, WorkerId to) const {
  std::uint64_t cursor = cursor_;
  IntervalSet taken;
  for (const Range& range : ranges) {
    const bool ahead = is_next(range.at, cursor);
    const bool again = returned_.holds(range.at) && taken.inside(range.at).empty();
    if (range.at.empty() || !(ahead || again)) {
      return fail(ErrorKind::kRefused, "positions {}:{} are granted to {} and were not free",
                  range.at.from, range.at.to, to);
    }
    if (ahead) cursor = range.at.to;
    taken.add(range.at);
  }
  return {};
}

void Supply::remove_untrained(IntervalSet& trained) const {
  trained.remove({cursor_, stream_.size()});
  for (const Range& range : returned_.ranges()) trained.remove(range.at);
  // A record that was committed before it was declared as skipped stays committed.
  for (const Interval skip : left_out_.intervals()) trained.remove(skip);
}

void Supply::take(Interval interval) {
  if (interval.from < cursor_) return returned_.remove(interval);
  if (skips_ahead_ > 0) skips_ahead_ -= total_size(skips_.inside({cursor_, interval.from}));
  cursor_ = interval.to;
}

void Supply::give_back(Range range, std::optional<WorkerId> late_of) {
  if (skips_.empty()) return returned_.add(range, late_of);
  for (const Interval part : skips_.outside(range.at)) {
    returned_.add({part, range.retries}, late_of);
  }
  for (const Interval part : skips_.inside(range.at)) leave_out(part);
}

void Supply::skip(Interval interval) {
  for (const Interval part : skips_.outside(interval)) {
    for (const Range& range : returned_.ranges()) {
      leave_out({std::max(range.at.from, part.from), std::min(range.at.to, part.to)});
    }
    returned_.remove(part);
    const Interval ahead{std::max(part.from, cursor_), part.to};
    if (!ahead.empty()) skips_ahead_ += ahead.size();
    leave_out(ahead);
    skips_.add(part);
  }
}

void Supply::leave_out(Interval skipped) {
  if (!skipped.empty()) left_out_.add(skipped);
}

}  // namespace antdt::shard_server
