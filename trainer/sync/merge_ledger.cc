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
    : contained_(places.size(), places), safe_(places) {
  ANTDT_CHECK(!places.empty(), "a ledger of no members");
}

void MergeLedger::applied(const Groups& groups, std::span<const std::uint64_t> places) {
  ANTDT_CHECK(places.size() == members(), "places of {} members, not of {}", places.size(),
              members());
  make_safe();
  mix(groups);
  for (std::uint32_t rank = 0; rank < members(); ++rank) {
    std::uint64_t& own = contained_[rank][rank];
    ANTDT_CHECK(places[rank] >= own, "rank {} goes back from place {} to {}", rank, own,
                places[rank]);
    own = places[rank];
  }
}

void MergeLedger::consolidated() {
  make_safe();
  mix(one_group(members()));
}

void MergeLedger::dropped() { make_safe(); }

void MergeLedger::mix(const Groups& groups) {
  std::vector<bool> seen(members());
  for (const auto& group : groups) {
    ANTDT_CHECK(!group.empty(), "an empty group");
    Places& first = contained_[group.front()];
    for (const std::uint32_t rank : group) {
      ANTDT_CHECK(!seen[rank], "rank {} is in two groups", rank);
      seen[rank] = true;
      raise_to(first, contained_[rank]);
    }
    for (const std::uint32_t rank : group) contained_[rank] = first;
  }
}

void MergeLedger::make_safe() {
  safe_ = contained_.front();
  for (const Places& places : contained_) {
    for (std::size_t i = 0; i < places.size(); ++i) safe_[i] = std::min(safe_[i], places[i]);
  }
}

std::uint64_t MergeLedger::merged(std::uint32_t origin,
                                  std::span<const std::uint32_t> holders) const {
  ANTDT_CHECK(!holders.empty(), "the model of no holder");
  std::uint64_t furthest = 0;
  for (const std::uint32_t holder : holders) {
    furthest = std::max(furthest, contained(holder, origin));
  }
  return furthest;
}

void MergeLedger::check_invariants() const {
  for (std::uint32_t holder = 0; holder < members(); ++holder) {
    for (std::uint32_t origin = 0; origin < members(); ++origin) {
      ANTDT_CHECK(contained(holder, origin) >= committable(origin),
                  "rank {} contains rank {} up to {}, and {} was committable", holder, origin,
                  contained(holder, origin), committable(origin));
      ANTDT_CHECK(contained(origin, origin) >= contained(holder, origin),
                  "rank {} contains of rank {} what that has not trained", holder, origin);
    }
  }
}

}  // namespace antdt::sync
