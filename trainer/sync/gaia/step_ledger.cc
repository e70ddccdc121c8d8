#include "trainer/sync/gaia/step_ledger.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace antdt::sync::gaia {

StepLedger::StepLedger(std::vector<std::uint32_t> domains)
    : domains_(std::move(domains)),
      one_(std::ranges::adjacent_find(domains_, std::ranges::not_equal_to()) == domains_.end()),
      places_(domains_.size()),
      whole_(places_),
      safe_(places_) {
  ANTDT_CHECK(!domains_.empty(), "a ledger of no members");
}

void StepLedger::applied(bool whole, std::span<const std::uint64_t> places) {
  safe_ = whole_;
  if (whole) whole_ = places_;  // what this step trains was not in it yet
  conclude(places);
}

void StepLedger::dropped(std::span<const std::uint64_t> places) {
  safe_ = whole_;
  conclude(places);
}

void StepLedger::conclude(std::span<const std::uint64_t> places) {
  ANTDT_CHECK(places.size() == places_.size(), "{} places of {} members", places.size(),
              places_.size());
  places_.assign(places.begin(), places.end());
  if (one_) whole_ = places_;
}

void StepLedger::consolidated() { whole_ = places_; }

std::uint64_t StepLedger::merged(std::uint32_t rank, std::span<const std::uint32_t> holders) const {
  const bool goes_on = std::ranges::any_of(
      holders, [&](std::uint32_t holder) { return domains_[holder] == domains_[rank]; });
  return goes_on ? places_[rank] : whole_[rank];
}

void StepLedger::check_invariants() const {
  for (std::uint32_t rank = 0; rank < members(); ++rank) {
    ANTDT_CHECK(
        safe_[rank] <= whole_[rank] && whole_[rank] <= places_[rank],
        "of rank {} at place {}, all have the records up to {}, and up to {} is committable", rank,
        places_[rank], whole_[rank], safe_[rank]);
  }
}

}  // namespace antdt::sync::gaia
