#include "trainer/client/client_core.h"

#include <algorithm>

namespace antdt::client {
namespace {

std::uint64_t microseconds(Duration duration) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  return us > 0 ? static_cast<std::uint64_t>(us) : 0;
}

void add_hop(wire::Report& report, std::uint64_t us) {
  report.hop_least_us = report.hops == 0 ? us : std::min(report.hop_least_us, us);
  ++report.hops;
  report.hop_us += us;
}

bool due(const std::optional<MonoTime>& sent_at, MonoTime now) {
  return !sent_at || now >= *sent_at + ClientCore::kReportEvery;
}

// Whether an order makes a standing message pointless: it is the answer to it,
// or a later stage than the one it belongs to. A join outlives what still comes
// of the generation before it; a loose one and one that hears of servers are
// answered by a phase (which is an order only where it fits, see is_prepared_for).
bool answers(const decltype(Directive::order)& order, const OutboundBody& standing) {
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
    // Ready stands until the phase is there as well: who says it again hears both.
    return std::holds_alternative<wire::Address>(standing);
  }
  return true;  // phase-start, ps-roster
}

}  // namespace

Effects ClientCore::step(const Event& event, MonoTime now) {
  Effects effects;
  std::visit([&](const auto& e) { on(e, now, effects); }, event);
  if (welcome_ && !refusal_) {
    if (auto request = feed_.poll(now)) {
      effects.send.push_back({request->generation, request->seq, std::move(request->fetch)});
    }
    if (!feed_.problem().empty()) refusal_ = Error{ErrorKind::kCorrupt, feed_.problem()};
  }
  return effects;
}

std::optional<MonoTime> ClientCore::deadline() const {
  if (refusal_) return {};
  std::optional<MonoTime> first = welcome_ ? feed_.deadline() : std::nullopt;
  const auto consider = [&](MonoTime when) { first = first ? std::min(*first, when) : when; };
  if (greeting_) consider(greeting_->sent_at + kRepeatAfter);
  if (standing_) consider(standing_->sent_at + kRepeatAfter);
  if (pulse_at_) consider(*pulse_at_);
  if (unsent_.has_report && unsent_.report_sent_at) {
    consider(*unsent_.report_sent_at + kReportEvery);
  }
  if (unsent_.progress && unsent_.progress_sent_at) {
    consider(*unsent_.progress_sent_at + kReportEvery);
  }
  return first;
}

// ------------------------------------------------------------ what arrives

void ClientCore::on(const Received& event, MonoTime now, Effects& effects) {
  const Generation generation = event.generation;
  if (const auto* welcome = std::get_if<wire::WorkerWelcome>(&event.body))
    return welcomed(*welcome, now);
  if (const auto* no = std::get_if<wire::Refused>(&event.body)) return refused(*no, now, effects);
  if (const auto* grants = std::get_if<wire::Grants>(&event.body)) {
    recorded(generation, grants->recorded);
    return feed_.on_grants(event.seq, *grants, now);
  }
  if (const auto* leave = std::get_if<wire::Leave>(&event.body)) {
    if (!leave_) order(generation, *leave, effects);
    leave_ = *leave;
    return;
  }
  if (const auto* injected = std::get_if<wire::Injected>(&event.body)) {
    if (injected->number > injected_.number) injected_ = *injected;
    return;
  }
  if (generation < newest_) return;  // of a membership that is over
  if (const auto* recall = std::get_if<wire::Recall>(&event.body)) {
    if (const auto recalled = feed_.on_recall(generation, event.seq, *recall)) {
      effects.send.push_back({generation, event.seq, *recalled});
    }
  } else if (const auto* plan = std::get_if<wire::Plan>(&event.body)) {
    hold_plan(*plan);
  } else if (const auto* checkpoint = std::get_if<wire::CheckpointOrder>(&event.body)) {
    checkpoint_ordered_ = std::max(checkpoint_ordered_, checkpoint->number);
  } else if (const auto* abort = std::get_if<wire::Abort>(&event.body)) {
    aborted(generation, *abort, effects);
  } else if (const auto* form = std::get_if<wire::Form>(&event.body)) {
    order(generation, *form, effects);
  } else if (const auto* roster = std::get_if<wire::Roster>(&event.body)) {
    order(generation, *roster, effects);
  } else if (const auto* servers = std::get_if<wire::PsRoster>(&event.body)) {
    hold_servers(generation, *servers);
    order(generation, *servers, effects);
  } else if (const auto* settle = std::get_if<wire::Settle>(&event.body)) {
    order(generation, *settle, effects);
  } else if (const auto* phase = std::get_if<wire::PhaseStart>(&event.body)) {
    order(generation, *phase, effects);
  } else if (const auto* regroup = std::get_if<wire::Regroup>(&event.body)) {
    regroup_ = std::max(regroup_, generation);
    order(generation, *regroup, effects);
  }
}

void ClientCore::recorded(Generation generation, Step step) {
  if (generation < recorded_of_) return;
  recorded_ = generation == recorded_of_ ? std::max(recorded_, step) : step;
  recorded_of_ = generation;
}

void ClientCore::on(const Unreadable& event, MonoTime, Effects&) {
  if (!refusal_) {
    refusal_ = Error{ErrorKind::kCorrupt,
                     fmt::format("the agent sent what cannot be read: {}", event.why)};
  }
}

void ClientCore::welcomed(const wire::WorkerWelcome& welcome, MonoTime now) {
  greeting_.reset();
  if (welcome.version < wire::kMinVersion || welcome.version > wire::kMaxVersion) {
    refusal_ = Error{ErrorKind::kRefused,
                     fmt::format("the agent chose protocol version {}, this worker speaks {} to "
                                 "{}: install the same release on both",
                                 welcome.version, wire::kMinVersion, wire::kMaxVersion)};
    return;
  }
  if (!welcome_) pulse_at_ = now + kPulseEvery;
  welcome_ = welcome;
}

void ClientCore::refused(const wire::Refused& refused, MonoTime now, Effects& effects) {
  if (refused.code == wire::RefusalCode::kBusy || refused.code == wire::RefusalCode::kFull)
    return;  // asked again by itself
  if (refused.code == wire::RefusalCode::kUnknown && welcome_) return on(Greet{}, now, effects);
  if (!refusal_) refusal_ = Error{ErrorKind::kRefused, refused.reason};
}

void ClientCore::order(Generation generation, decltype(Directive::order) order, Effects& effects) {
  const auto* phase = std::get_if<wire::PhaseStart>(&order);
  if (phase && awaits_settle(generation)) {
    early_phase_ = {generation, *phase};
    return;
  }
  if (phase && !is_prepared_for(generation)) return roster_is_missing(generation, effects);
  // Nothing follows on kFinish but another try of it.
  const std::pair which{generation, phase ? phase->phase + phase->tries : 0};
  const auto [seen, is_first] = seen_.try_emplace(order.index(), which);
  // Repeated, or of a phase that is over.
  if (!is_first && seen->second >= which && !std::holds_alternative<wire::Leave>(order)) return;
  seen->second = which;

  if (standing_ && answers(order, standing_->message.body)) standing_.reset();
  if (generation > newest_) {
    // What comes of a new generation ends the one before, if its Abort was lost.
    if (newest_ > Generation{}) effects.abort = newest_;
    newest_ = generation;
    std::erase_if(orders_, [&](const Directive& old) {
      return old.generation < generation && !std::holds_alternative<wire::Leave>(old.order);
    });
  }
  if (const auto* settle = std::get_if<wire::Settle>(&order)) {
    plans_.clear();
    hold_plan(settle->plan);
  }
  const bool settles = std::holds_alternative<wire::Settle>(order);
  orders_.push_back({generation, std::move(order)});
  if (settles && early_phase_ && early_phase_->first == generation) {
    this->order(generation, std::exchange(early_phase_, {})->second, effects);
  }
}

bool ClientCore::awaits_settle(Generation generation) const {
  if (!standing_ || !std::holds_alternative<wire::Ready>(standing_->message.body)) return false;
  const std::size_t settle = decltype(Directive::order)(wire::Settle{}).index();
  const auto seen = seen_.find(settle);
  return seen == seen_.end() || seen->second.first != generation;
}

Generation ClientCore::rostered() const {
  const auto seen = seen_.find(decltype(Directive::order)(wire::PsRoster{}).index());
  return seen == seen_.end() ? Generation{} : seen->second.first;
}

bool ClientCore::is_prepared_for(Generation generation) const {
  const auto* join = standing_ ? std::get_if<wire::Join>(&standing_->message.body) : nullptr;
  if (join && join->collective) {
    // Of the generation that it was in it wants nothing any more.
    return rostered() == generation && generation > standing_->message.generation;
  }
  return rostered() == Generation{} || rostered() == generation;
}

// Who waits for an answer to its join goes on asking. Who is in a generation before
// has missed its end as well.
void ClientCore::roster_is_missing(Generation generation, Effects& effects) {
  const bool joins = standing_ && std::holds_alternative<wire::Join>(standing_->message.body);
  if (joins || generation < rostered()) return;
  aborted(rostered(), wire::Abort{"another one has begun, and its servers are not known here"},
          effects);
}

void ClientCore::hold_servers(Generation generation, const wire::PsRoster& roster) {
  const std::pair which{generation, roster.number};
  if (servers_ && std::pair{servers_->first, servers_->second.number} >= which) return;
  servers_ = {generation, roster};
}

std::optional<wire::PsRoster> ClientCore::servers(Generation generation, std::uint64_t than) const {
  if (!servers_ || servers_->first != generation || servers_->second.number <= than) return {};
  return servers_->second;
}

void ClientCore::hold_plan(const wire::Plan& plan) {
  constexpr std::size_t kKept = 64;
  plans_[plan.version] = plan;
  if (plans_.size() > kKept) plans_.erase(plans_.begin());
}

void ClientCore::aborted(Generation generation, const wire::Abort& abort, Effects& effects) {
  std::erase_if(orders_, [&](const Directive& old) {
    // That it had settled is true all the same: others may have gone on from there.
    return old.generation <= generation && !std::holds_alternative<wire::Leave>(old.order) &&
           !std::holds_alternative<wire::Abort>(old.order) &&
           !std::holds_alternative<wire::Settle>(old.order);
  });
  order(generation, abort, effects);
  effects.abort = generation;
}

std::optional<Directive> ClientCore::next_directive() {
  if (orders_.empty()) return {};
  Directive next = std::move(orders_.front());
  orders_.pop_front();
  current_ = std::max(current_, next.generation);
  return next;
}

Known ClientCore::known() const {
  Known known{held_plan(), checkpoint_ordered_, {}, regroup_requested(), recorded_of_, recorded_};
  if (leave_) known.leave = leave_->code;
  return known;
}

PlanVersion ClientCore::held_plan() const {
  return plans_.empty() ? PlanVersion{} : plans_.rbegin()->first;
}

std::optional<wire::Plan> ClientCore::plan(PlanVersion version) const {
  const auto found = plans_.find(version);
  return found == plans_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Generation> ClientCore::abort_waiting() const {
  for (const Directive& directive : orders_) {
    if (std::holds_alternative<wire::Abort>(directive.order)) return directive.generation;
  }
  return {};
}

// ------------------------------------------------- what the worker wants

void ClientCore::on(const Greet&, MonoTime now, Effects& effects) {
  Outbound hello{{}, 0, wire::Hello{wire::kMinVersion, wire::kMaxVersion, "antdt-client"}};
  greeting_ = Standing{hello, now};
  effects.send.push_back(std::move(hello));
}

void ClientCore::on(const Tick&, MonoTime now, Effects& effects) {
  for (std::optional<Standing>* standing : {&greeting_, &standing_}) {
    if (!*standing || now < (*standing)->sent_at + kRepeatAfter) continue;
    (*standing)->sent_at = now;
    effects.send.push_back((*standing)->message);
  }
  if (pulse_at_ && now >= *pulse_at_) send_report(now, effects);
  flush_report(now, effects);
  flush_progress(now, effects);
}

void ClientCore::on(const BeginPhase& event, MonoTime, Effects&) {
  feed_.begin(event.phase, current_);
}

void ClientCore::on(const SetHold& event, MonoTime, Effects&) { feed_.set_hold(event.records); }

void ClientCore::on(const Commit& event, MonoTime now, Effects&) {
  feed_.commit(event.place, event.partial, now);
}

void ClientCore::on(const GiveBack& event, MonoTime, Effects&) { feed_.give_back(event.records); }

void ClientCore::on(const BatchTimes& times, MonoTime now, Effects& effects) {
  if (times.in_model) samples_total_ += times.samples;
  unsent_.has_report = true;
  if (times.counts) {
    unsent_.report.batches += 1;
    unsent_.report.samples += times.samples;
    unsent_.report.data_us += microseconds(times.data);
    unsent_.report.compute_us += microseconds(times.compute);
    unsent_.report.wait_us += microseconds(times.wait);
  } else {
    unsent_.report.skipped += 1;
  }
  if (times.hop) add_hop(unsent_.report, microseconds(*times.hop));
  flush_report(now, effects);
}

void ClientCore::on(const wire::TimeAccount& account, MonoTime now, Effects& effects) {
  account_ = account;
  unsent_.has_report = true;
  flush_report(now, effects);
}

void ClientCore::flush_report(MonoTime now, Effects& effects) {
  if (unsent_.has_report && due(unsent_.report_sent_at, now)) send_report(now, effects);
}

void ClientCore::send_report(MonoTime now, Effects& effects) {
  unsent_.report.samples_total = samples_total_;
  unsent_.report.account = account_;
  unsent_.report.step = step_;
  unsent_.report.activity = activity_;
  unsent_.report.io = io_.what;
  unsent_.report.io_path = io_.path;
  unsent_.report.io_done_bytes = io_.done_bytes;
  unsent_.report.io_total_bytes = io_.total_bytes;
  unsent_.report.throttle_permille = throttle_permille_;
  effects.send.push_back({current_, 0, std::exchange(unsent_.report, {})});
  unsent_.has_report = false;
  unsent_.report_sent_at = now;
  if (pulse_at_) pulse_at_ = now + kPulseEvery;
}

void ClientCore::on(const wire::Progress& progress, MonoTime now, Effects& effects) {
  step_ = progress.step;
  if (progress.done) {
    unsent_.progress.reset();
    feed_.place_was_sent(progress.phase, progress.place);
    return stand(progress, now, effects);
  }
  wire::StepHistory history = progress.history;
  const bool goes_on = unsent_.progress && unsent_.progress_generation == current_;
  if (history.runs.empty() && goes_on) history = std::move(unsent_.progress->history);
  unsent_.progress = progress;
  unsent_.progress->history = std::move(history);
  unsent_.progress_generation = current_;
  flush_progress(now, effects);
}

void ClientCore::flush_progress(MonoTime now, Effects& effects) {
  if (!unsent_.progress || !due(unsent_.progress_sent_at, now)) return;
  feed_.place_was_sent(unsent_.progress->phase, unsent_.progress->place);
  effects.send.push_back({unsent_.progress_generation, 0, *unsent_.progress});
  unsent_.progress.reset();
  unsent_.progress_sent_at = now;
}

void ClientCore::stand(OutboundBody body, MonoTime now, Effects& effects) {
  standing_ = Standing{{current_, 0, std::move(body)}, now};
  effects.send.push_back(standing_->message);
}

void ClientCore::on(const wire::Join& join, MonoTime now, Effects& effects) {
  step_ = join.step;
  stand(join, now, effects);
}
void ClientCore::on(const wire::Address& address, MonoTime now, Effects& effects) {
  stand(address, now, effects);
}
void ClientCore::on(const wire::Ready& ready, MonoTime now, Effects& effects) {
  step_ = ready.step;
  stand(ready, now, effects);
}
void ClientCore::on(const wire::CheckpointBegun& begun, MonoTime, Effects& effects) {
  effects.send.push_back({current_, 0, begun});
}
void ClientCore::on(const wire::CheckpointWritten& written, MonoTime, Effects& effects) {
  effects.send.push_back({current_, 0, written});
}

void ClientCore::on(const wire::Bye& bye, MonoTime now, Effects& effects) {
  standing_.reset();
  pulse_at_.reset();
  unsent_.report_sent_at.reset();
  unsent_.progress_sent_at.reset();
  flush_report(now, effects);
  flush_progress(now, effects);
  wire::Bye last = bye;
  if (last.samples_total == 0) last.samples_total = samples_total_;
  if (last.account.startup == 0 && last.account.compute == 0) last.account = account_;
  effects.send.push_back({current_, 0, std::move(last)});
}

}  // namespace antdt::client
