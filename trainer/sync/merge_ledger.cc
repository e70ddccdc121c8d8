#include "trainer/sync/merge_ledger.h"

#include <algorithm>

#include "core/check.h"

namespace antdt::sync {
namespace {

void raise_to(std::vector<std::uint64_t>& places, const std::vector<std::uint64_t>& others) {
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = std::max(places[i], others[i]);
}

}  // namespace

MergeLedger::MergeLedger(const std::vector<std::uint64_t>& places)
    : contained_(places.size(), places), safe_(places), lost_(places.size()) {
  ANTDT_CHECK(!places.empty(), "a ledger of no members");
}

void MergeLedger::applied(const Groups& groups, std::span<const std::uint64_t> places) {
  ANTDT_CHECK(places.size() == lost_.size(), "places of {} members, not of {}", places.size(),
              lost_.size());
  make_safe();
  mix(groups);
  for (std::uint32_t rank = 0; rank < members(); ++rank) {
    if (lost_[rank]) continue;
    std::uint64_t& own = contained_[rank][rank];
    ANTDT_CHECK(places[rank] >= own, "rank {} goes back from place {} to {}", rank, own,
                places[rank]);
    own = places[rank];
  }
}

void MergeLedger::consolidated() {
  make_safe();
  Groups all(1);
  for (std::uint32_t rank = 0; rank < members(); ++rank) {
    if (!lost_[rank]) all[0].push_back(rank);
  }
  mix(all);
}

void MergeLedger::dropped() { make_safe(); }

void MergeLedger::mix(const Groups& groups) {
  std::vector<bool> seen = lost_;
  for (const auto& group : groups) {
    ANTDT_CHECK(!group.empty(), "an empty group");
    Places& first = contained_[group.front()];
    for (const std::uint32_t rank : group) {
      ANTDT_CHECK(!seen[rank], "rank {} is lost, or in two groups", rank);
      seen[rank] = true;
      raise_to(first, contained_[rank]);
    }
    for (const std::uint32_t rank : group) contained_[rank] = first;
  }
  ANTDT_CHECK(std::ranges::find(seen, false) == seen.end(), "a member is in no group");
}

void MergeLedger::make_safe() {
  bool first = true;
  for (const Places& places : contained_) {
    if (places.empty()) continue;
    for (std::size_t i = 0; i < places.size(); ++i) {
      safe_[i] = first ? places[i] : std::min(safe_[i], places[i]);
    }
    first = false;
  }
}

void MergeLedger::lose(std::uint32_t rank) {
  lost_[rank] = true;
  contained_[rank].clear();
}

std::uint64_t MergeLedger::contained(std::uint32_t holder, std::uint32_t origin) const {
  ANTDT_CHECK(!lost_[holder], "rank {} is lost, and with it what its replica contains", holder);
  return contained_[holder][origin];
}

// No survivor at all: what all contained, which is of use to nobody.
std::uint64_t MergeLedger::merged(std::uint32_t origin) const {
  std::uint64_t furthest = safe_[origin];
  for (const Places& places : contained_) {
    if (!places.empty()) furthest = std::max(furthest, places[origin]);
  }
  return furthest;
}

void MergeLedger::check_invariants() const {
  for (std::uint32_t holder = 0; holder < members(); ++holder) {
    if (lost_[holder]) continue;
    for (std::uint32_t origin = 0; origin < members(); ++origin) {
      ANTDT_CHECK(contained_[holder][origin] >= safe_[origin],
                  "rank {} contains rank {} up to {}, and {} was committable", holder, origin,
                  contained_[holder][origin], safe_[origin]);
      ANTDT_CHECK(lost_[origin] || contained_[origin][origin] >= contained_[holder][origin],
                  "rank {} contains of rank {} what that has not trained", holder, origin);
    }
  }
}

std::optional<Undecided> undecided(Step own, std::span<const Step> survivors) {
  const Step furthest = std::ranges::max(survivors);
  if (furthest.value > std::ranges::min(survivors).value + 1) return std::nullopt;
  return own < furthest ? Undecided::kConclude : Undecided::kDrop;
}

}  // namespace antdt::sync
