#include "sim/members/ring_seat.h"

#include <algorithm>
#include <utility>

#include "sim/checks.h"
#include "sim/members/rings.h"
#include "sim/members/worker.h"
#include "sim/surroundings.h"

namespace antdt::sim {
namespace {

// How long an aborted collective takes to release a member that waits in it.
constexpr Duration kLetsGo = std::chrono::microseconds(200);
constexpr Duration kAskAgain = std::chrono::milliseconds(20);

}  // namespace

// ------------------------------------------------------------- what it waits in

std::uint64_t RingSeat::wait() {
  const std::uint64_t operation = worker_.begin_operation();
  waits_ = true;
  return operation;
}

// The training thread wakes up in an event of its own.
void RingSeat::answered(std::uint64_t operation, worker::Input input) {
  worker_.later(
      {}, [this, operation, input = std::move(input)] { worker_.answered(operation, input); });
}

void RingSeat::abort() {
  if (waits_ && ring_ != nullptr) break_up();
}

void RingSeat::break_up() {
  ring_->leave(rank_, false);
  worker_.later(kLetsGo, [this, operation = worker_.operation()] {
    worker_.answered(operation, worker::CollectiveBroke{"it was aborted"});
  });
}

void RingSeat::leave(bool silently) {
  if (Ring* const ring = std::exchange(ring_, nullptr)) ring->leave(rank_, silently);
}

void RingSeat::exchange(Contribution mine, AsInput as_input) {
  const std::uint64_t operation = wait();
  if (worker_.end_of_generation().over()) return break_up();
  ring_->exchange(
      rank_, std::move(mine), [this, operation, as_input = std::move(as_input)](const auto& all) {
        answered(operation,
                 all ? as_input(all) : worker::Input(worker::CollectiveBroke{"it broke"}));
      });
}

// ------------------------------------------------------------- what the machine wants

RingSeat::Answer RingSeat::perform(const worker::LeaveCollective&) {
  leave(false);
  return {};
}

RingSeat::Answer RingSeat::perform(const worker::AbandonStep&) {
  leave(false);
  return {};
}

RingSeat::Answer RingSeat::perform(const worker::BuildCollective& effect) {
  worker_.end_of_generation().begin(effect.generation);
  rank_ = effect.rank;
  concluded_.clear();
  return worker::CollectiveBuilt{
      {fmt::format("{}:{}", worker_.member().worker, effect.generation)}};
}

RingSeat::Answer RingSeat::perform(const worker::ConnectCollective& effect) {
  std::vector<WorkerId> members;
  for (const wire::RosterMember& m : effect.members) members.push_back(m.worker);
  ring_ = &worker_.around().rings.at(effect.form.key, members);
  if (worker_.end_of_generation().over()) return worker::CollectiveBroke{"it is over already"};
  ring_->connect(rank_, [this, operation = wait()](const auto& all) {
    answered(operation, all ? worker::Input(worker::CollectiveConnected{})
                            : worker::CollectiveBroke{"cannot connect"});
  });
  return {};
}

RingSeat::Answer RingSeat::perform(const worker::CompareStates& effect) {
  Contribution mine;
  mine.heal = {effect.has_state, effect.step, effect.meta.size(), 1, 1, 1, effect.consolidated};
  const bool differs = effect.has_state && effect.consolidated == Generation{};
  if (differs) mine.concluded = worker_.training().places;
  exchange(std::move(mine), [this](const auto& all) {
    worker::StatesCompared compared;
    Step furthest;
    for (const Contribution& c : *all) {
      compared.slots.push_back(c.heal);
      furthest = std::max(furthest, c.heal.step);
      if (!c.concluded.empty() && c.heal.step == furthest) concluded_ = c.concluded;
    }
    if (worker_.sabotage() == Sabotage::kHoldBehind) {
      const auto top = std::ranges::max(compared.slots, {}, &worker::HealSlot::version);
      for (worker::HealSlot& slot : compared.slots) {
        slot.step = top.step;
        slot.consolidated = top.consolidated;
      }
    }
    return compared;
  });
  return {};
}

RingSeat::Answer RingSeat::perform(const worker::Mix& effect) {
  state_.before = state_.model;
  mix(effect.group, fmt::format("mix {}", effect.step),
      [] { return worker::Input(worker::Mixed{}); });
  return {};
}

RingSeat::Answer RingSeat::perform(const worker::Consolidate& effect) {
  const bool in_phase = worker_.settled() == worker_.generation();
  if (in_phase && worker_.sabotage() == Sabotage::kSaveUnmixed) return worker::Consolidated{};
  if (!effect.domains.empty()) {
    consolidate_domains(effect);
    return {};
  }
  mix(effect.holders, fmt::format("consolidate {}", worker_.step()), [this] {
    state_.model.updates.clear();
    worker_.around().checks.consolidated(worker_);
    return worker::Input(worker::Consolidated{});
  });
  return {};
}

void RingSeat::mix(const Ring::Group& group, const std::string& what,
                   std::function<worker::Input()> done) {
  const std::uint64_t operation = wait();
  if (worker_.end_of_generation().over()) return break_up();
  Contribution mine;
  mine.replica = std::make_shared<const Model>(state_.model);
  ring_->exchange_in(group, what, rank_, std::move(mine),
                     [this, operation, done = std::move(done)](const auto& all) {
                       worker_.later({}, [this, operation, done, all] {
                         if (!worker_.is_under_way(operation)) return;
                         if (!all)
                           return worker_.answered(operation, worker::CollectiveBroke{"it broke"});
                         for (const Contribution& c : *all) take(*c.replica);
                         worker_.answered(operation, done());
                       });
                     });
}

// The model becomes a mean of itself and another replica, so it contains what is in either.
void RingSeat::take(const Model& other) {
  for (const auto& [number, update] : other.updates) {
    if (!state_.model.add(number, update)) continue;
    for (const Record r : update->records) worker_.around().checks.trained(worker_, r);
  }
}

RingSeat::Answer RingSeat::perform(const worker::PassState& effect) {
  if (!effect.plan.receives) {
    ring_->offer(rank_, {effect.meta, state_.model});
    return worker::StatePassed{};
  }
  const std::uint64_t operation = wait();
  const bool keeps_old = effect.keeps_own && worker_.sabotage() == Sabotage::kKeepOldState;
  ring_->receive_left(
      rank_, [this, operation, keeps_old, sends = effect.plan.sends](const auto& state) {
        worker_.later({}, [this, operation, keeps_old, sends, state] {
          if (!worker_.is_under_way(operation)) return;
          if (!state) {
            return worker_.answered(operation, worker::CollectiveBroke{"its source is gone"});
          }
          if (!keeps_old) state_.model = state->model;
          if (sends) ring_->offer(rank_, {state->meta, state_.model});
          worker_.answered(operation, worker::StatePassed{state->meta});
        });
      });
  return {};
}

ShareTable& RingSeat::table() { return ring_->table(rank_, *worker_.shape().sharing); }

RingSeat::Answer RingSeat::perform(const worker::OfferPart& effect) {
  in_group_ = effect.offer.member;
  if (worker_.sabotage() == Sabotage::kComputeTwice) table().sabotage();
  table().send(effect.offer, state_.part, [](const auto&, const auto&) {});
  return {};
}

RingSeat::Answer RingSeat::perform(const worker::AskForRun& effect) {
  const std::uint64_t operation = wait();
  if (worker_.end_of_generation().over()) {
    break_up();
  } else {
    ask(operation, effect.ask);
  }
  return {};
}

// Repeated until it is answered.
void RingSeat::ask(std::uint64_t operation, const worker::sharing::Asked& asked) {
  if (!worker_.is_under_way(operation) || !waits_ || ring_ == nullptr) return;
  const auto heard = [&worker = worker_, &handed = state_.handed, operation, number = asked.number,
                      there = std::weak_ptr(there_)](const auto& answer, const auto& records) {
    if (there.expired() || answer.number != number) return;
    worker.later({}, [&worker, &handed, operation, answer, records] {
      if (!worker.is_under_way(operation)) return;
      handed = records;
      worker.answered(operation, worker::RunAnswered{answer});
    });
  };
  table().send(asked, state_.part, heard);
  worker_.later(kAskAgain, [this, operation, asked] { ask(operation, asked); });
}

std::span<const Record> RingSeat::records_of(const worker::sharing::Run& run) const {
  if (run.owner != in_group_) return state_.handed;
  return std::span(state_.part).subspan(run.from, run.records());
}

RingSeat::Answer RingSeat::perform(const worker::GatherSlots& effect) {
  Contribution mine;
  mine.slot = effect.mine;
  mine.records = std::exchange(state_.batch, {});
  mine.skipped = std::exchange(state_.skipped, 0);
  exchange(std::move(mine), [this](const auto& all) {
    state_.gathered = all;
    worker::SlotsGathered slots;
    for (const Contribution& c : *all) slots.slots.push_back(c.slot);
    return slots;
  });
  return {};
}

}  // namespace antdt::sim
