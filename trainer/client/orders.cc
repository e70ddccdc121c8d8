#include "trainer/client/orders.h"

#include <algorithm>

namespace antdt::client {
namespace {

// Whether an order ends the repetition of a standing message: it answers the message, or belongs to
// a later stage. A join is still repeated after late orders of the generation before it. A phase
// answers the join of a loose worker and of one that uses servers (a phase becomes an order only if
// it fits, see is_prepared_for).
bool answers(const Orders::Order& order, const OutboundBody& standing) {
  if (std::holds_alternative<wire::Regroup>(order)) return false;
  if (const auto* join = std::get_if<wire::Join>(&standing)) {
    return std::holds_alternative<wire::PhaseStart>(order) ||
           std::holds_alternative<wire::Leave>(order) ||
           (join->collective && std::holds_alternative<wire::Form>(order));
  }
  if (std::holds_alternative<wire::Leave>(order)) return false;
  if (std::holds_alternative<wire::Abort>(order) || std::holds_alternative<wire::Form>(order)) {
    return true;
  }
  if (std::holds_alternative<wire::Roster>(order)) {
    return std::holds_alternative<wire::Address>(standing);
  }
  if (std::holds_alternative<wire::Settle>(order)) {
    // Ready is repeated until the phase has arrived, too, because a repeated Ready is answered with
    // both.
    return std::holds_alternative<wire::Address>(standing);
  }
  return true;  // phase-start, ps-roster
}

}  // namespace

// ------------------------------------------------------------------- what arrives

void Orders::hear(Generation generation, Order order, Effects& out) {
  if (const auto* leave = std::get_if<wire::Leave>(&order)) {
    const bool is_first = !leave_;
    leave_ = *leave;
    if (is_first) enqueue(generation, std::move(order), out);
    return;
  }
  if (const auto* told = std::get_if<wire::Abort>(&order)) return abort(generation, *told, out);
  if (const auto* roster = std::get_if<wire::PsRoster>(&order)) hold_servers(generation, *roster);
  if (std::holds_alternative<wire::Regroup>(order)) regroup_ = std::max(regroup_, generation);
  enqueue(generation, std::move(order), out);
}

void Orders::enqueue(Generation generation, Order order, Effects& out) {
  const auto* phase = std::get_if<wire::PhaseStart>(&order);
  if (phase && awaits_settle(generation)) {
    early_phase_ = {generation, *phase};
    return;
  }
  if (phase && !is_prepared_for(generation)) return roster_is_missing(generation, out);
  // After kFinish only another try of it can follow.
  const std::pair which{generation, phase ? phase->phase + phase->tries : 0};
  const auto [seen, is_first] = seen_.try_emplace(order.index(), which);
  // The order is a repetition, or of a phase that is over.
  if (!is_first && seen->second >= which && !std::holds_alternative<wire::Leave>(order)) return;
  seen->second = which;
  const bool is_again = tries_again_ == generation;
  if (is_again && std::holds_alternative<wire::PsRoster>(order)) return;  // servers_ has it

  if (standing_ && answers(order, standing_->message.body)) standing_.reset();
  if (is_again && phase) queue_.push_back({generation, servers_->second});
  if (phase || generation > tries_again_) tries_again_ = {};
  if (generation > newest_) {
    // An order of a new generation ends the one before, in case its Abort was lost.
    if (newest_ > Generation{}) out.emplace_back(ReleaseCollective{newest_});
    newest_ = generation;
    std::erase_if(queue_, [&](const Directive& old) {
      return old.generation < generation && !std::holds_alternative<wire::Leave>(old.order);
    });
  }
  if (const auto* settle = std::get_if<wire::Settle>(&order)) {
    plans_.clear();
    hear_plan(settle->plan);
  }
  const bool settles = std::holds_alternative<wire::Settle>(order);
  queue_.push_back({generation, std::move(order)});
  if (settles && early_phase_ && early_phase_->first == generation) {
    enqueue(generation, std::exchange(early_phase_, {})->second, out);
  }
}

bool Orders::awaits_settle(Generation generation) const {
  if (!standing_ || !std::holds_alternative<wire::Ready>(standing_->message.body)) return false;
  const std::size_t settle = Order(wire::Settle{}).index();
  const auto seen = seen_.find(settle);
  return seen == seen_.end() || seen->second.first != generation;
}

Generation Orders::rostered() const {
  const auto seen = seen_.find(Order(wire::PsRoster{}).index());
  return seen == seen_.end() ? Generation{} : seen->second.first;
}

bool Orders::is_prepared_for(Generation generation) const {
  const auto* join = standing_ ? std::get_if<wire::Join>(&standing_->message.body) : nullptr;
  if (join && join->collective) {
    // The worker has nothing more to do with the generation that it was in, unless it could not
    // begin there and tries again.
    const Generation was_in = standing_->message.generation;
    const bool fits = join->problem.empty() ? generation > was_in : generation >= was_in;
    return rostered() == generation && fits;
  }
  return rostered() == Generation{} || rostered() == generation;
}

// A worker that waits for an answer to its join repeats it. A worker in an earlier generation has
// also missed the end of that generation.
void Orders::roster_is_missing(Generation generation, Effects& out) {
  const bool joins = standing_ && std::holds_alternative<wire::Join>(standing_->message.body);
  if (joins || generation < rostered()) return;
  abort(rostered(), wire::Abort{"another one has begun, and its servers are not known here"}, out);
}

void Orders::hold_servers(Generation generation, const wire::PsRoster& roster) {
  const std::pair which{generation, roster.number};
  if (servers_ && std::pair{servers_->first, servers_->second.number} >= which) return;
  servers_ = {generation, roster};
}

std::optional<wire::PsRoster> Orders::servers(Generation generation, std::uint64_t than) const {
  if (!servers_ || servers_->first != generation || servers_->second.number <= than) return {};
  return servers_->second;
}

void Orders::hear_plan(const wire::Plan& plan) {
  constexpr std::size_t kKept = 64;
  plans_[plan.version] = plan;
  if (plans_.size() > kKept) plans_.erase(plans_.begin());
}

void Orders::abort(Generation generation, const wire::Abort& abort, Effects& out) {
  std::erase_if(queue_, [&](const Directive& old) {
    // A Settle stays true after its generation ended: others may have gone on from there.
    return old.generation <= generation && !std::holds_alternative<wire::Leave>(old.order) &&
           !std::holds_alternative<wire::Abort>(old.order) &&
           !std::holds_alternative<wire::Settle>(old.order);
  });
  enqueue(generation, abort, out);
  out.emplace_back(ReleaseCollective{generation});
}

std::optional<Directive> Orders::take_next() {
  if (queue_.empty()) return {};
  Directive next = std::move(queue_.front());
  queue_.pop_front();
  current_ = std::max(current_, next.generation);
  return next;
}

PlanVersion Orders::held_plan() const {
  return plans_.empty() ? PlanVersion{} : plans_.rbegin()->first;
}

std::optional<wire::Plan> Orders::plan(PlanVersion version) const {
  const auto found = plans_.find(version);
  return found == plans_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Generation> Orders::abort_waiting() const {
  for (const Directive& directive : queue_) {
    if (std::holds_alternative<wire::Abort>(directive.order)) return directive.generation;
  }
  return {};
}

// ------------------------------------------------------------------- what stands

void Orders::stand(OutboundBody body, MonoTime now, Effects& out) {
  const auto* join = std::get_if<wire::Join>(&body);
  if (join && !join->problem.empty()) expect_servers_again();
  standing_ = Standing{{current_, 0, std::move(body)}, now};
  out.emplace_back(standing_->message);
}

// A worker that could not begin with its servers has done nothing with them. It tries again when it
// is told of them and of the phase again, and that is then no repetition. A roster alone may be one
// that all workers are told because a server was replaced: nobody has admitted this one again, and
// its join would go on being repeated.
void Orders::expect_servers_again() {
  if (rostered() == Generation{} || rostered() != current_) return;
  tries_again_ = current_;
  seen_.erase(Order(wire::PsRoster{}).index());
  const auto phase = seen_.find(Order(wire::PhaseStart{}).index());
  if (phase != seen_.end() && phase->second.first == current_) seen_.erase(phase);
}

void Orders::repeat_standing(MonoTime now, Effects& out) {
  if (!standing_ || now < standing_->sent_at + kRepeatAfter) return;
  standing_->sent_at = now;
  out.emplace_back(standing_->message);
}

std::optional<MonoTime> Orders::repeat_at() const {
  if (!standing_) return {};
  return standing_->sent_at + kRepeatAfter;
}

}  // namespace antdt::client
