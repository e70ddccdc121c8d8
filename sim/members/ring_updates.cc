// How a member exchanges updates with other domains (Gaia): their first members exchange messages,
// and each passes to its own domain what came.
#include <algorithm>
#include <utility>

#include "sim/checks.h"
#include "sim/members/ring_seat.h"
#include "sim/members/worker.h"
#include "sim/surroundings.h"

namespace antdt::sim {

// An exchange of updates that is under way. The replica of the member changes when it is complete.
struct RingSeat::Updating {
  std::uint64_t operation = 0;
  UpdatesAbout about;
  std::string own;
  Ring::Group leaders, within;
  Model next;
  UpdatesDone done;
};

namespace {

// The larger the threshold, the less is sent.
worker::UpdatesExchanged bytes_of(const worker::ExchangeUpdates& effect) {
  constexpr std::uint64_t kDense = 1000;
  constexpr double kHalf = 0.01;  // the threshold with which half of it is sent
  const double share = effect.whole ? 1 : kHalf / (kHalf + effect.threshold);
  return {static_cast<std::uint64_t>(share * kDense), kDense};
}

}  // namespace

RingSeat::Answer RingSeat::perform(const worker::ExchangeUpdates& effect) {
  state_.domain = effect.own;
  state_.visited_under.reset();
  if (effect.visits) state_.visited_under = effect.threshold;
  const worker::UpdatesExchanged bytes = bytes_of(effect);
  const auto done = [this, bytes](Model next, const std::vector<Record>& gained) {
    state_.before = std::exchange(state_.model, std::move(next));
    check_gained(gained);
    return worker::Input(bytes);
  };
  exchange_updates(effect.domains,
                   {fmt::format("updates {}", effect.step), effect.whole, effect.threshold},
                   state_.model, done);
  return {};
}

// Each domain withdraws what it has of those that are lost, and then nothing is left in part.
void RingSeat::consolidate_domains(const worker::Consolidate& effect) {
  std::vector<std::string> domains;
  for (const worker::DomainRanks& d : effect.domains) domains.push_back(d.domain);
  Model next = state_.model;
  const bool withdraws = worker_.sabotage() != Sabotage::kKeepParts;
  const std::size_t updates = withdraws ? withdraw_others(next, domains) : 0;
  if (updates > 0) {
    worker_.world().say("{} withdraws {} updates of domains that are lost", worker_.member().worker,
                        updates);
  }
  const auto done = [this](Model model, const std::vector<Record>& gained) {
    state_.model = std::move(model);
    check_gained(gained);
    worker_.around().checks.consolidated(worker_);
    state_.model.held.clear();
    return worker::Input(worker::Consolidated{});
  };
  exchange_updates(effect.domains, {fmt::format("consolidate {}", worker_.step()), true},
                   std::move(next), done);
}

void RingSeat::check_threshold(const Updating& on, const Contribution& other) {
  if (other.threshold == on.about.threshold) return;
  worker_.world().violate("one threshold",
                          fmt::format("{} and {} in one exchange; {}", on.about.threshold,
                                      other.threshold, worker_.doing()));
}

void RingSeat::check_gained(const std::vector<Record>& gained) {
  for (const Record r : gained) worker_.around().checks.trained(worker_, r);
  if (!has_a_piece_twice(state_.model)) return;
  worker_.world().violate("exactly once", "a part of an update came twice; " + worker_.doing());
}

void RingSeat::exchange_updates(const std::vector<worker::DomainRanks>& domains, UpdatesAbout about,
                                Model next, UpdatesDone done) {
  auto on = std::make_shared<Updating>();
  on->operation = wait();
  on->about = std::move(about);
  on->next = std::move(next);
  on->done = std::move(done);
  for (const worker::DomainRanks& d : domains) {
    on->leaders.push_back(d.ranks.front());
    if (!std::ranges::binary_search(d.ranks, static_cast<std::uint32_t>(rank_))) continue;
    on->own = d.domain;
    on->within = d.ranks;
  }
  auto mine = std::make_shared<const Messages>(
      Messages{send_updates(on->next, on->own, worker_.step(), on->about.whole)});
  if (worker_.end_of_generation().over()) return break_up();
  const bool leads = on->within.front() == rank_;
  if (leads && on->leaders.size() > 1) {
    meet(on, true, std::move(mine));
  } else {
    pass_on(on, std::make_shared<const Messages>());
  }
}

// Exchanges messages with the first members of other domains, or within this one.
void RingSeat::meet(const std::shared_ptr<Updating>& on, bool across,
                    std::shared_ptr<const Messages> mine) {
  Contribution contribution;
  contribution.messages = std::move(mine);
  contribution.threshold = on->about.threshold;
  const auto met = [this, on, across](const std::shared_ptr<const Ring::Contributions>& all) {
    if (!worker_.is_under_way(on->operation)) return;
    if (!all) return worker_.answered(on->operation, worker::CollectiveBroke{"it broke"});
    if (worker_.end_of_generation().over()) return break_up();
    auto came = std::make_shared<Messages>();
    for (const Contribution& c : *all) {
      check_threshold(*on, c);
      for (const DomainMessage& m : *c.messages) {
        if (m.domain != on->own) came->push_back(m);
      }
    }
    across ? pass_on(on, std::move(came)) : take_all(*on, *came);
  };
  ring_->exchange_in(across ? on->leaders : on->within,
                     on->about.what + (across ? " across" : " within"), rank_,
                     std::move(contribution),
                     [this, met](const auto& all) { worker_.later({}, [met, all] { met(all); }); });
}

// The first member passes on what came from other domains, and the others have nothing to pass.
void RingSeat::pass_on(const std::shared_ptr<Updating>& on, std::shared_ptr<const Messages> came) {
  if (on->within.size() == 1) {
    return worker_.later({}, [this, on, came = std::move(came)] {
      if (worker_.is_under_way(on->operation)) take_all(*on, *came);
    });
  }
  meet(on, false, std::move(came));
}

void RingSeat::take_all(Updating& on, const Messages& messages) {
  std::vector<Record> gained;
  for (const DomainMessage& message : messages) take_updates(on.next, message, gained);
  worker_.answered(on.operation, on.done(std::move(on.next), gained));
}

}  // namespace antdt::sim
