#include "shard_server/accounts/program_skips.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/utf8.h"
#include "core/wire/shard_messages.h"

namespace antdt::shard_server {

std::uint32_t SkipReasons::number_of(std::string_view given) {
  std::string reason = valid_utf8(given, wire::SkippedRecords::kMaxReason);
  if (reason.empty()) reason = kNone;
  auto found = std::ranges::find(all_, reason);
  if (found == all_.end() && all_.size() + 1 >= kMost) {
    reason = kOther;
    found = std::ranges::find(all_, reason);
  }
  if (found == all_.end()) found = all_.insert(all_.end(), reason);
  return static_cast<std::uint32_t>(found - all_.begin());
}

// ------------------------------------------------------------------- of one member

void HeldSkips::add(SkippedAt skipped) {
  IntervalSet fresh;
  fresh.add(skipped.at);
  for (const auto& [reason, said] : by_reason_) {
    for (const Interval known : said.inside(skipped.at)) fresh.remove(known);
  }
  for (const Interval part : fresh.intervals()) by_reason_[skipped.reason].add(part);
}

std::vector<SkippedAt> HeldSkips::take(Interval at) {
  std::vector<SkippedAt> taken;
  for (auto& [reason, said] : by_reason_) {
    for (const Interval part : said.inside(at)) taken.push_back({part, reason});
    said.remove(at);
  }
  std::erase_if(by_reason_, [](const auto& entry) { return entry.second.empty(); });
  return taken;
}

void HeldSkips::keep_within(const IntervalSet& held) {
  for (const SkippedAt& skipped : all()) {
    for (const Interval gone : held.outside(skipped.at)) take(gone);
  }
}

std::vector<SkippedAt> HeldSkips::all() const {
  std::vector<SkippedAt> all;
  for (const auto& [reason, said] : by_reason_) {
    for (const Interval part : said.intervals()) all.push_back({part, reason});
  }
  return all;
}

// ------------------------------------------------------------------- of one epoch

void EpochSkips::add(SkippedAt skipped) {
  if (by_reason_.size() <= skipped.reason) by_reason_.resize(skipped.reason + 1);
  by_reason_[skipped.reason] += skipped.at.size();
  if (!kept_.empty() && kept_.back().reason == skipped.reason &&
      kept_.back().at.to == skipped.at.from) {
    kept_.back().at.to = skipped.at.to;
    return;
  }
  if (kept_.size() == kMostKept) kept_.erase(kept_.begin(), kept_.begin() + kMostKept / 2);
  kept_.push_back(skipped);
}

// `parts` says which intervals of one that is kept stay.
template <class Parts>
void EpochSkips::replace_kept(Parts parts) {
  for (const SkippedAt& skipped : std::exchange(kept_, {})) {
    by_reason_[skipped.reason] -= skipped.at.size();
    for (const Interval part : parts(skipped.at)) {
      by_reason_[skipped.reason] += part.size();
      kept_.push_back({part, skipped.reason});
    }
  }
}

void EpochSkips::remove(Interval at) {
  IntervalSet gone;
  gone.add(at);
  replace_kept([&gone](Interval kept) { return gone.outside(kept); });
}

void EpochSkips::keep_within(const IntervalSet& committed) {
  replace_kept([&committed](Interval kept) { return committed.inside(kept); });
}

std::uint64_t EpochSkips::total() const {
  return std::accumulate(by_reason_.begin(), by_reason_.end(), std::uint64_t{0});
}

bool EpochSkips::is_possible(std::size_t reasons, std::uint64_t committed) const {
  if (by_reason_.size() > reasons) return false;
  std::uint64_t rest = committed;
  for (const std::uint64_t records : by_reason_) {
    if (records > rest) return false;
    rest -= records;
  }
  std::vector<std::uint64_t> known(by_reason_.size());
  for (const SkippedAt& skipped : kept_) {
    if (skipped.at.empty() || skipped.reason >= known.size()) return false;
    if (skipped.at.size() > by_reason_[skipped.reason] - known[skipped.reason]) return false;
    known[skipped.reason] += skipped.at.size();
  }
  return kept_.size() <= kMostKept * 2;
}

}  // namespace antdt::shard_server
