#include "trainer/worker/member/exchange.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace antdt::worker {
namespace {

// Members by domain, in the order of the domains' first members. `ranks` are the members, and
// `domains` their domains.
std::vector<DomainRanks> by_domain(std::span<const std::uint32_t> ranks,
                                   std::span<const std::string> domains) {
  std::vector<DomainRanks> all;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    auto found = std::ranges::find(all, domains[i], &DomainRanks::domain);
    if (found == all.end()) found = all.insert(all.end(), {domains[i], {}});
    found->ranks.push_back(ranks[i]);
  }
  return all;
}

std::vector<std::uint32_t> numbers_of(const std::vector<std::string>& domain_of,
                                      const std::vector<DomainRanks>& domains) {
  std::vector<std::uint32_t> numbers;
  for (const std::string& domain : domain_of) {
    const auto at = std::ranges::find(domains, domain, &DomainRanks::domain);
    numbers.push_back(static_cast<std::uint32_t>(at - domains.begin()));
  }
  return numbers;
}

}  // namespace

void StepExchange::begin(std::uint32_t rank, const std::vector<std::string>& domains) {
  rank_ = rank;
  members_ = static_cast<std::uint32_t>(domains.size());
  committable_.assign(members_, 0);
  visit_.reset();
  if (const auto* const mixes = std::get_if<DsSync>(&rules_)) {
    state_.emplace<Mixing>(Mixing{sync::ds_sync::GroupSchedule(members_, mixes->seed),
                                  sync::MergeLedger(committable_)});
  } else if (const auto* const exchanges = std::get_if<Gaia>(&rules_)) {
    std::vector<DomainRanks> all = by_domain(sync::one_group(members_).front(), domains);
    sync::gaia::StepLedger ledger(numbers_of(domains, all));
    Gaia rules = *exchanges;
    rules.whole_every = std::max(1U, rules.whole_every);
    state_.emplace<Exchanging>(Exchanging{rules, domains, std::move(all), std::move(ledger)});
  } else {
    state_.emplace<Summing>(Summing{committable_});
  }
}

void StepExchange::plan_threshold(std::optional<double> threshold) {
  const bool same = threshold_ == threshold;
  threshold_ = threshold;
  auto* const exchanging = std::get_if<Exchanging>(&state_);
  if (!same && exchanging != nullptr) exchanging->round = {};
}

// ------------------------------------------------------------------ what precedes computing

StepExchange::Course StepExchange::course(Step step) const {
  return std::visit([&](const auto& state) { return course_of(state, step); }, state_);
}

StepExchange::Course StepExchange::course_of(const Summing&, Step) const { return {}; }

StepExchange::Course StepExchange::course_of(const Mixing& state, Step step) const {
  Course course{{}, {.local = true}};
  for (auto& group : state.schedule.groups(step)) {
    if (!std::ranges::binary_search(group, rank_)) continue;
    if (group.size() > 1) course.first = Mix{std::move(group), step};
    break;
  }
  return course;
}

// With one domain, it is a step in which all members sum their gradients.
StepExchange::Course StepExchange::course_of(const Exchanging& state, Step step) const {
  if (state.domains.size() < 2) return {};
  const std::string& own = state.domain_of[rank_];
  const auto at = std::ranges::find(state.domains, own, &DomainRanks::domain);
  return {ExchangeUpdates{state.domains, own, state.is_whole(step), step, threshold_of(state.rules),
                          state.has_visit(step)},
          {.local = false, .sums_with = at->ranks}};
}

// Under DsSync, members apply their own gradients. Divided by their part of the weight, the mean of
// these updates is the update of the sum. Under Gaia, the updates of domains are added, so each is
// divided by the weight of all.
double StepExchange::divisor(double weight) const {
  return std::holds_alternative<Mixing>(state_) ? weight / members_ : weight;
}

// ------------------------------------------------------------------ what was concluded

bool StepExchange::concluded(Step step, const Agreement& agreed) {
  return std::visit([&](auto& state) { return conclude(state, step, agreed); }, state_);
}

// That a step has completed says that all have concluded the one before.
bool StepExchange::conclude(Summing& state, Step, const Agreement& agreed) {
  committable_ = std::exchange(state.places, agreed.places);
  return false;
}

bool StepExchange::conclude(Mixing& state, Step step, const Agreement& agreed) {
  const bool counts = agreed.records > 0;
  if (counts) {
    // Records whose weight is 0 count, too, although nothing was mixed or applied.
    const bool mixed = agreed.applies();
    state.ledger.applied(mixed ? state.schedule.groups(step) : sync::Groups{}, agreed.places);
  } else {
    state.ledger.dropped();
  }
  for (std::uint32_t rank = 0; rank < members_; ++rank) {
    committable_[rank] = state.ledger.committable(rank);
  }
  return counts && members_ > 1;
}

bool StepExchange::conclude(Exchanging& state, Step step, const Agreement& agreed) {
  if (agreed.applies()) {
    state.ledger.applied(state.is_whole(step), agreed.places);
  } else {
    state.ledger.dropped(agreed.places);
  }
  for (std::uint32_t rank = 0; rank < members_; ++rank) {
    committable_[rank] = state.ledger.committable(rank);
  }
  if (state.domains.size() > 1) count_round(state, step, agreed);
  return agreed.records > 0 && state.domains.size() > 1;
}

// What was dropped has sent nothing that counts, and its visit says nothing: not all members have
// had records. The update of the step itself is seen by the visit after it.
void StepExchange::count_round(Exchanging& state, Step step, const Agreement& agreed) {
  if (!agreed.applies()) return;
  Round& round = state.round;
  round.sent_bytes += agreed.sent_bytes;
  round.dense_bytes += agreed.dense_bytes;
  if (state.has_visit(step)) {
    const VisitSums& sums = agreed.visit;
    if (sums.records > 0) {
      visit_ =
          wire::Visit{step.next(),      threshold_of(state.rules), round.steps,   sums.records,
                      sums.own_right,   sums.guest_right,          sums.own_loss, sums.guest_loss,
                      round.sent_bytes, round.dense_bytes};
    }
    round = {};
  }
  ++round.steps;
}

void StepExchange::consolidated() {
  if (auto* const mixing = std::get_if<Mixing>(&state_)) mixing->ledger.consolidated();
  auto* const exchanging = std::get_if<Exchanging>(&state_);
  if (exchanging == nullptr) return;
  exchanging->ledger.consolidated();
  exchanging->round = {};
}

// ------------------------------------------------------------------ what that means

std::vector<std::uint64_t> StepExchange::merged(std::span<const std::uint32_t> holders) const {
  if (const auto* const summing = std::get_if<Summing>(&state_)) return summing->places;
  std::vector<std::uint64_t> places;
  for (std::uint32_t rank = 0; rank < members_; ++rank) {
    const auto* const mixing = std::get_if<Mixing>(&state_);
    places.push_back(mixing ? mixing->ledger.merged(rank, holders)
                            : std::get<Exchanging>(state_).ledger.merged(rank, holders));
  }
  return places;
}

Consolidate StepExchange::consolidation(std::span<const std::uint32_t> holders,
                                        std::vector<std::uint32_t> now) const {
  ANTDT_CHECK(holders.size() == now.size(), "{} members have {} ranks", holders.size(), now.size());
  const auto* const exchanging = std::get_if<Exchanging>(&state_);
  if (exchanging == nullptr) return {std::move(now)};
  std::vector<std::string> domains;
  for (const std::uint32_t holder : holders) domains.push_back(exchanging->domain_of[holder]);
  std::vector<DomainRanks> ranks = by_domain(now, domains);
  return {std::move(now), std::move(ranks)};
}

}  // namespace antdt::worker
