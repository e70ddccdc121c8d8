#include "shard_server/suspects/suspects.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace antdt::shard_server {
namespace {

bool holds(const SuspiciousDeath& death, std::uint64_t position) {
  return std::ranges::any_of(
      death.held, [position](const Interval& i) { return i.from <= position && position < i.to; });
}

}  // namespace

void Suspects::add(SuspiciousDeath death) {
  std::erase_if(deaths_, [&](const SuspiciousDeath& d) { return d.epoch != death.epoch; });
  if (deaths_.size() >= kMost) deaths_.erase(deaths_.begin());
  deaths_.push_back(std::move(death));
}

std::optional<Interval> Suspects::shared_by(std::uint32_t deaths) const {
  if (deaths_.size() < deaths || deaths_.empty()) return {};
  std::set<std::uint64_t> bounds;  // positions between two bounds are alike
  for (const SuspiciousDeath& death : deaths_) {
    for (const Interval& i : death.held) bounds.insert({i.from, i.to});
  }
  std::optional<Interval> found;
  for (auto at = bounds.begin(); at != bounds.end() && std::next(at) != bounds.end(); ++at) {
    const auto those =
        std::ranges::count_if(deaths_, [&](const SuspiciousDeath& d) { return holds(d, *at); });
    const bool shared = holds(deaths_.back(), *at) && those >= static_cast<std::ptrdiff_t>(deaths);
    if (!shared && found) break;
    if (shared) found = Interval{found ? found->from : *at, *std::next(at)};
  }
  return found;
}

std::vector<Interval> held_by(const Holder& holder, std::uint64_t place, std::uint64_t records) {
  std::vector<Interval> held;
  std::uint64_t passed = place - std::min(place, holder.place);
  for (const Range& range : holder.grants) {
    Interval at = range.at;
    const std::uint64_t before = std::min(passed, at.size());
    passed -= before;
    at.from += before;
    at.to = at.from + std::min(records, at.size());
    records -= at.size();
    if (!at.empty()) held.push_back(at);
  }
  return held;
}

std::string suspects_text(const std::string& run, Epoch epoch, Interval at, std::uint32_t deaths,
                          Member last) {
  return fmt::format(
      "positions {}:{} of epoch {} were held by {} workers that were lost, {} (attempt {}) the "
      "last: "
      "its log may say why. Resume to try them again, or go on without them: antdt data "
      "skip {} {}:{} --epoch {} --reason TEXT",
      at.from, at.to, epoch.value + 1, deaths, last.worker, last.attempt, run, at.from, at.to,
      epoch.value + 1);
}

}  // namespace antdt::shard_server
