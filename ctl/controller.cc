#include "ctl/controller.h"

#include <algorithm>

namespace antdt::ctl {

namespace {

bool same_parts(const wire::Plan& a, const wire::Plan& b) {
  return std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
                    [](const wire::PlanEntry& x, const wire::PlanEntry& y) {
                      return x.worker == y.worker && x.micro_batch == y.micro_batch &&
                             x.accumulation == y.accumulation;
                    });
}

// A solution's parts as a plan. A user's own solution may say anything, so
// that it names exactly the members is checked here.
Result<wire::Plan> plan_from(const AdjustBatch& action, const wire::Plan& now, PlanVersion version,
                             const BatchRules& rules) {
  std::map<WorkerId, double> wanted;
  for (const Share& s : action.shares) wanted[s.worker] = s.samples;
  std::vector<WorkerId> ids;
  std::vector<double> weights;
  for (const wire::PlanEntry& entry : now.entries) {
    const auto found = wanted.find(entry.worker);
    if (found == wanted.end()) {
      return fail(ErrorKind::kUsage, "the decision gives {} no part of the batch", entry.worker);
    }
    ids.push_back(entry.worker);
    weights.push_back(found->second);
  }
  if (action.shares.size() != ids.size()) {
    return fail(ErrorKind::kUsage, "the decision names {} workers, the group has {}",
                action.shares.size(), ids.size());
  }
  return make_plan(version, ids, weights, rules);
}

}  // namespace

Result<Mode> parse_mode(std::string_view text) {
  if (text == "observe") return Mode::kObserve;
  if (text == "advise") return Mode::kAdvise;
  if (text == "act") return Mode::kAct;
  return fail(ErrorKind::kUsage,
              "[control] mode = \"{}\" is none of \"observe\", \"advise\", \"act\"", text);
}

Controller::Controller(ControllerConfig config, std::unique_ptr<Solution> solution)
    : config_(std::move(config)),
      solution_(std::move(solution)),
      monitor_(config_.monitor),
      last_version_(config_.last_version) {}

std::vector<Effect> Controller::step(const Event& event, MonoTime now) {
  std::vector<Effect> effects;
  std::visit([&](const auto& e) { on(e, now, effects); }, event);
  return effects;
}

Duration Controller::tick_interval() const {
  return std::clamp<Duration>(config_.monitor.transient_window / 5, std::chrono::milliseconds(50),
                              std::chrono::seconds(1));
}

bool Controller::settled(MonoTime now) const { return settled_at_ && now >= *settled_at_; }

// Members that stay keep their proportions; newcomers get the median part.
Result<wire::Plan> Controller::plan_for(const std::vector<Monitor::MemberInfo>& members) {
  if (config_.rules.adjust == Adjust::kAccumulation && config_.rules.base == 0) {
    config_.rules.base = accumulation_base(config_.rules, members.size());
  }
  std::vector<WorkerId> ids;
  std::vector<double> known;
  std::vector<double> weights;
  for (const auto& info : members) {
    ids.push_back(info.member.worker);
    const auto old = members_.find(info.member.worker);
    const bool stays = old != members_.end() && old->second == info.member.attempt;
    weights.push_back(stays ? static_cast<double>(shares_.at(info.member.worker)) : -1.0);
    if (stays) known.push_back(weights.back());
  }
  std::sort(known.begin(), known.end());
  const double median = known.empty() ? 1 : known[known.size() / 2];
  std::replace(weights.begin(), weights.end(), -1.0, median);
  return make_plan(last_version_.next(), ids, weights, config_.rules);
}

void Controller::take(const wire::Plan& plan, std::vector<Effect>& effects) {
  plan_ = plan;
  last_version_ = plan.version;
  settled_at_.reset();
  effects.push_back(SendPlan{plan});
}

void Controller::on(const GroupFormed& event, MonoTime /*now*/, std::vector<Effect>& effects) {
  auto members = event.members;
  std::sort(members.begin(), members.end(),
            [](const auto& a, const auto& b) { return a.member < b.member; });
  auto plan = plan_for(members);
  if (!plan) {
    effects.push_back(Impossible{plan.error()});
    return;
  }
  members_.clear();
  for (const auto& info : members) members_[info.member.worker] = info.member.attempt;
  monitor_.set_members(members);
  take(*plan, effects);
  new_group_ = true;
  put_in_force();
}

void Controller::put_in_force() {
  shares_.clear();
  for (const wire::PlanEntry& entry : plan_.entries) shares_[entry.worker] = share_of(entry);
}

void Controller::on(const PlanInForce& event, MonoTime now, std::vector<Effect>& /*effects*/) {
  if (event.version != plan_.version || settled_at_) return;
  put_in_force();
  monitor_.plan_changed(now);
  // A new group warms up: caches, connections, first allocations.
  const Duration window = config_.monitor.transient_window;
  settled_at_ = now + (new_group_ ? window : window / 2);
  new_group_ = false;
  view_.plan = event.version;
}

void Controller::on(const Observed& event, MonoTime now, std::vector<Effect>& /*effects*/) {
  monitor_.step(event.observation, now);
}

void Controller::on(const Tick& event, MonoTime now, std::vector<Effect>& effects) {
  view_.workers = monitor_.view(now);
  for (WorkerView& worker : view_.workers) worker.share = shares_.at(worker.member.worker);
  view_.rules = config_.rules;
  view_.transient_window = config_.monitor.transient_window;
  view_.persistent_window = config_.monitor.persistent_window;
  view_.remaining = event.remaining;
  if (!settled(now)) return;
  const Decision decision = solution_->decide(view_, now);
  for (const Action& action : decision.actions) consider(action, decision.reason, now, effects);
}

// Drastic actions of the last hour are counted; what is over the bound is advised.
std::string_view Controller::outcome_for(const Action& action, MonoTime now) {
  if (config_.mode == Mode::kObserve) return "observed";
  if (config_.mode == Mode::kAdvise) return "advised";
  if (!is_drastic(action)) return "applied";
  const bool allowed =
      std::find(config_.allow.begin(), config_.allow.end(), kind_of(action)) != config_.allow.end();
  while (!drastic_.empty() && now - drastic_.front() >= std::chrono::hours(1)) drastic_.pop_front();
  return allowed && drastic_.size() < config_.max_actions_per_hour ? "applied" : "advised";
}

// The same wish comes again at every tick until it is granted: it is said once
// in a persistent window. A drastic one is not repeated sooner either.
bool Controller::said_lately(const Action& action, MonoTime now) {
  std::erase_if(said_, [&](const auto& entry) {
    return now - entry.second >= config_.monitor.persistent_window;
  });
  return !said_.emplace(std::pair(std::string(kind_of(action)), target_of(action)), now).second;
}

void Controller::consider(const Action& action, const std::string& reason, MonoTime now,
                          std::vector<Effect>& effects) {
  const std::string_view outcome = outcome_for(action, now);
  if (outcome == "applied" && !is_drastic(action)) return apply(action, reason, now, effects);
  if (said_lately(action, now)) return;
  if (outcome == "applied") return apply(action, reason, now, effects);
  record(action, reason, outcome, now, effects);
}

void Controller::record(const Action& action, const std::string& reason, std::string_view outcome,
                        MonoTime now, std::vector<Effect>& effects) const {
  effects.push_back(RecordAction{now, std::string(kind_of(action)), target_of(action), reason,
                                 std::string(outcome)});
}

void Controller::apply(const Action& action, const std::string& reason, MonoTime now,
                       std::vector<Effect>& effects) {
  const auto* batch = std::get_if<AdjustBatch>(&action);
  if (batch == nullptr) {
    if (is_drastic(action)) drastic_.push_back(now);
    record(action, reason, "applied", now, effects);
    effects.push_back(Perform{action});
    return;
  }
  const auto plan = plan_from(*batch, plan_, last_version_.next(), config_.rules);
  if (!plan) {
    if (said_lately(action, now)) return;
    record(action, fmt::format("{} (refused: {})", reason, plan.error().message), "refused", now,
           effects);
    return;
  }
  if (same_parts(*plan, plan_)) return;
  record(action, reason, "applied", now, effects);
  take(*plan, effects);
}

}  // namespace antdt::ctl
