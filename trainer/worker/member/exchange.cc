#include "trainer/worker/member/exchange.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace antdt::worker {

void StepExchange::begin(std::uint32_t rank, std::uint32_t members) {
  rank_ = rank;
  members_ = members;
  places_.assign(members, 0);
  committable_ = places_;
  mixing_.reset();
  if (const auto* const rules = std::get_if<DsSync>(&rules_)) {
    mixing_.emplace(
        Mixing{sync::ds_sync::GroupSchedule(members, rules->seed), sync::MergeLedger(places_)});
  }
}

StepExchange::Course StepExchange::course(Step step) const {
  if (!mixing_) return {};
  for (auto& group : mixing_->schedule.groups(step)) {
    if (std::ranges::binary_search(group, rank_)) return {std::move(group), true};
  }
  return {{}, true};
}

// Under DsSync, members apply their own gradients. Divided by their part of the weight, the mean of
// these updates is the update of the sum.
double StepExchange::divisor(double weight) const { return mixing_ ? weight / members_ : weight; }

// That a step has completed says that all have concluded the one before.
bool StepExchange::concluded(Step step, const Agreement& agreed) {
  if (!mixing_) {
    committable_ = std::exchange(places_, agreed.places);
    return false;
  }
  sync::MergeLedger& ledger = mixing_->ledger;
  const bool counts = agreed.records > 0;
  if (counts) {
    // Records whose weight is 0 count, too, although nothing was mixed or applied.
    const bool mixed = agreed.applies();
    ledger.applied(mixed ? mixing_->schedule.groups(step) : sync::Groups{}, agreed.places);
  } else {
    ledger.dropped();
  }
  for (std::uint32_t rank = 0; rank < members_; ++rank) {
    committable_[rank] = ledger.committable(rank);
  }
  return counts && members_ > 1;
}

void StepExchange::consolidated() {
  if (mixing_) mixing_->ledger.consolidated();
}

std::vector<std::uint64_t> StepExchange::merged(std::span<const std::uint32_t> holders) const {
  if (!mixing_) return places_;
  std::vector<std::uint64_t> places;
  for (std::uint32_t rank = 0; rank < members_; ++rank) {
    places.push_back(mixing_->ledger.merged(rank, holders));
  }
  return places;
}

}  // namespace antdt::worker
