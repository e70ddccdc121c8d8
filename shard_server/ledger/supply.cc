#include "shard_server/ledger/supply.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace antdt::shard_server {
namespace {

// Bounds of one answer, so that no message is large.
constexpr std::uint64_t kMaxPieces = 1024;
constexpr std::size_t kMaxReturnedRanges = 256;

}  // namespace

std::vector<Range> SectionSupply::next(const EpochStream& stream, std::uint64_t records,
                                       std::optional<WorkerId> but_of) const {
  const std::uint64_t end = part_.positions.to;
  std::uint64_t pieces = kMaxPieces;
  std::vector<Range> chosen;
  const auto choose = [&](Range range) {
    if (records == 0 || pieces == 0) return;
    range.at.to = std::min(range.at.to, range.at.from + records);
    range.at.to = std::min(range.at.to, stream.reach(range.at.from, pieces));
    records -= range.at.size();
    pieces -= stream.shards_in(range.at);
    chosen.push_back(range);
  };
  if (returned_.size() > 0) {
    for (const Range& range : returned_.front(records, kMaxReturnedRanges, but_of)) choose(range);
    // The order is that of the stream: records ahead of the cursor follow only after all returned
    // ones.
    if (chosen.size() == kMaxReturnedRanges) return chosen;
  }
  if (records == 0 || pieces == 0 || cursor_ == end) return chosen;
  if (skips_ahead_ == 0) {
    choose({{cursor_, end}, 0});
  } else {
    for (const Interval part : skips_.outside({cursor_, end})) choose({part, 0});
  }
  return chosen;
}

bool SectionSupply::is_next(Interval at, std::uint64_t cursor) const {
  return at.from >= cursor && at.to <= part_.positions.to &&
         skips_.outside({cursor, at.from}).empty() && skips_.inside(at).empty();
}

Status SectionSupply::check_free(const std::vector<Range>& ranges, WorkerId to) const {
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

void SectionSupply::remove_untrained(IntervalSet& trained) const {
  trained.remove({cursor_, part_.positions.to});
  for (const Range& range : returned_.ranges()) trained.remove(range.at);
  // A record that was committed before it was declared as skipped stays committed.
  for (const Interval skip : left_out_.intervals()) trained.remove(skip);
}

void SectionSupply::take(Interval interval) {
  if (interval.from < cursor_) return returned_.remove(interval);
  if (skips_ahead_ > 0) skips_ahead_ -= total_size(skips_.inside({cursor_, interval.from}));
  cursor_ = interval.to;
}

void SectionSupply::give_back(Range range, std::optional<WorkerId> late_of) {
  if (skips_.empty()) return returned_.add(range, late_of);
  for (const Interval part : skips_.outside(range.at)) {
    returned_.add({part, range.retries}, late_of);
  }
  for (const Interval part : skips_.inside(range.at)) leave_out(part);
}

void SectionSupply::skip(Interval interval) {
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

void SectionSupply::leave_out(Interval skipped) {
  if (!skipped.empty()) left_out_.add(skipped);
}

void SectionSupply::count_skips_ahead() {
  skips_ahead_ = total_size(skips_.inside({cursor_, part_.positions.to}));
}

// ----------------------------------------------------------------- all sections

Supply::Supply(EpochStream stream) : stream_(std::move(stream)) {
  for (const EpochStream::Part& part : stream_.parts()) sections_.emplace_back(part);
}

std::uint64_t Supply::granted_once() const {
  std::uint64_t sum = 0;
  for (const SectionSupply& section : sections_) {
    sum += section.cursor() - section.positions().from;
  }
  return sum;
}

std::uint64_t Supply::ungranted() const {
  std::uint64_t sum = 0;
  for (const SectionSupply& section : sections_) sum += section.ungranted();
  return sum;
}

std::uint64_t Supply::returned() const {
  std::uint64_t sum = 0;
  for (const SectionSupply& section : sections_) sum += section.returned().size();
  return sum;
}

const SectionSupply* Supply::section_of(DomainNumber domain) const {
  if (!is_pinned()) return &sections_.front();
  const auto found = std::ranges::lower_bound(sections_, domain, {}, &SectionSupply::domain);
  return found != sections_.end() && found->domain() == domain ? &*found : nullptr;
}

SectionSupply& Supply::section_at(std::uint64_t position) {
  const auto behind = std::ranges::upper_bound(
      sections_, position, {}, [](const SectionSupply& s) { return s.positions().from; });
  return *std::prev(behind);
}

std::uint64_t Supply::ungranted_in(DomainNumber domain) const {
  const SectionSupply* const section = section_of(domain);
  return section == nullptr ? 0 : section->ungranted();
}

std::uint64_t Supply::late_of(WorkerId worker, DomainNumber domain) const {
  const SectionSupply* const section = section_of(domain);
  return section == nullptr ? 0 : section->returned().late_of(worker);
}

std::vector<Range> Supply::next(std::uint64_t records, DomainNumber domain,
                                std::optional<WorkerId> but_of) const {
  const SectionSupply* const section = section_of(domain);
  if (section == nullptr) return {};
  return section->next(stream_, records, but_of);
}

Status Supply::check_free(const std::vector<Range>& ranges, WorkerId to,
                          DomainNumber domain) const {
  if (ranges.empty()) return {};
  const SectionSupply* const section = section_of(domain);
  if (section != nullptr) return section->check_free(ranges, to);
  return fail(ErrorKind::kRefused,
              "positions {}:{} are granted to {}, and no record is pinned to its domain",
              ranges.front().at.from, ranges.front().at.to, to);
}

void Supply::remove_untrained(IntervalSet& trained) const {
  for (const SectionSupply& section : sections_) section.remove_untrained(trained);
}

void Supply::skip(Interval interval) {
  for (SectionSupply& section : sections_) {
    const Interval within{std::max(interval.from, section.positions().from),
                          std::min(interval.to, section.positions().to)};
    if (!within.empty()) section.skip(within);
  }
}

}  // namespace antdt::shard_server
