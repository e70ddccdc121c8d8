#include "ctl/control/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/check.h"

namespace antdt::ctl {

Result<Mode> parse_mode(std::string_view text) {
  if (const auto mode = by_name<Mode>(text)) return *mode;
  return fail(ErrorKind::kUsage,
              "[control] mode = \"{}\" is none of \"observe\", \"advise\", \"act\"", text);
}

namespace control {
namespace {

bool same_parts(const wire::Plan& a, const wire::Plan& b) {
  return std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
                    [](const wire::PlanEntry& x, const wire::PlanEntry& y) {
                      return x.worker == y.worker && x.micro_batch == y.micro_batch &&
                             x.accumulation == y.accumulation;
                    });
}

}  // namespace

Controller::Controller(ControllerConfig config, std::unique_ptr<Solution> solution)
    : config_(std::move(config)),
      solution_(std::move(solution)),
      monitor_(config_.monitor),
      server_watch_(config_.monitor),
      last_version_(config_.last_version) {
  plan_ = plan_of_nobody();
}

void Controller::step(const Input& input, MonoTime now, Effects& out) {
  std::visit([&](const auto& i) { on(i, now, out); }, input);
  check_invariants();
}

void Controller::check_invariants() const {
  ANTDT_CHECK(plan_.entries.size() == members_.size(), "plan {} is of {} workers, the group of {}",
              plan_.version, plan_.entries.size(), members_.size());
}

Duration Controller::tick_interval() const {
  return std::clamp<Duration>(config_.monitor.transient_window / 5, std::chrono::milliseconds(50),
                              std::chrono::seconds(1));
}

bool Controller::settled(MonoTime now) const {
  const auto* settling = std::get_if<Settling>(&state_);
  return settling != nullptr && now >= settling->until;
}

// Members that stay keep their proportions, and newcomers get the median part.
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
    weights.push_back(stays ? static_cast<double>(share_of(in_force_.at(info.member.worker)))
                            : -1.0);
    if (stays) known.push_back(weights.back());
  }
  std::sort(known.begin(), known.end());
  const double median = known.empty() ? 1 : known[known.size() / 2];
  std::replace(weights.begin(), weights.end(), -1.0, median);
  return bounded_plan(last_version_.next(), ids, std::move(weights), config_.rules, bounds_);
}

// Turns a solution's parts into a plan. A user's own solution may say anything, so this checks that
// it names exactly the members. If records are pinned, its parts count within each domain, and its
// micro-batches are kept if they already divide a step among the domains as their records do.
Result<wire::Plan> Controller::plan_from(const AdjustBatch& action) const {
  const PlanVersion version = last_version_.next();
  std::map<WorkerId, Share> wanted;
  for (const Share& s : action.shares) wanted[s.worker] = s;
  std::vector<WorkerId> ids;
  std::vector<double> weights;
  wire::Plan given{version, {}};
  for (const wire::PlanEntry& entry : plan_.entries) {
    const auto found = wanted.find(entry.worker);
    if (found == wanted.end()) {
      return fail(ErrorKind::kUsage, "the decision gives {} no part of the batch", entry.worker);
    }
    const Share& share = found->second;
    ids.push_back(entry.worker);
    weights.push_back(share.samples);
    if (share.micro_batch != 0)
      given.entries.push_back({entry.worker, share.micro_batch, share.accumulation});
  }
  if (action.shares.size() != ids.size()) {
    return fail(ErrorKind::kUsage, "the decision names {} workers, the group has {}",
                action.shares.size(), ids.size());
  }
  const bool fits_domains = !longest_domain(given, bounds_.rests);
  if (given.entries.size() == ids.size() && fits_domains) {
    ANTDT_RETURN_IF_ERROR(check_plan(given, bounds_.memory, config_.rules));
    return given;
  }
  return bounded_plan(version, ids, std::move(weights), config_.rules, bounds_);
}

void Controller::take(const wire::Plan& plan, Effects& out) {
  plan_ = plan;
  plan_.rate = config_.rate;
  plan_.threshold = config_.planned_threshold;
  last_version_ = plan.version;
  state_ = AwaitingPlan{false};
  out.emplace_back(SendPlan{plan_});
}

// A member that is missing is being started again, or has gone for good. Of one that is here in
// another attempt nobody knows since when it was away, unless its restart was ordered here.
void Controller::watch_restarts(const std::vector<Monitor::MemberInfo>& members, MonoTime now) {
  std::set<WorkerId> present;
  for (const auto& info : members) present.insert(info.member.worker);
  for (const auto& [worker, attempt] : members_) {
    if (!present.contains(worker)) expect_restart({worker, attempt}, now);
  }
}

void Controller::expect_restart(Member member, MonoTime now) {
  Away& away = away_[member.worker];
  if (away.attempt < member.attempt) away = {member.attempt, now};
}

// A restart that was refused, that ended a worker for good, or that waits for room, perhaps for
// days, does not show how long a restart takes.
void Controller::on(const AttemptsSeen& event, MonoTime /*now*/, Effects& /*out*/) {
  if (away_.empty()) return;
  const std::set<Member> seen(event.attempts.begin(), event.attempts.end());
  std::erase_if(away_, [&](const auto& entry) {
    const auto& [worker, away] = entry;
    const auto newer = seen.upper_bound({worker, away.attempt});
    return newer == seen.end() || newer->worker != worker;
  });
}

// The plan is in force, so a worker that has come back trains.
void Controller::count_restarts(MonoTime now) {
  for (const auto& [worker, attempt] : members_) {
    const auto found = away_.find(worker);
    if (found == away_.end() || attempt <= found->second.attempt) continue;
    const Duration took = now - found->second.since;
    restart_time_ = restart_time_ ? (*restart_time_ + took) / 2 : took;
    away_.erase(found);
  }
}

void Controller::on(const GroupFormed& event, MonoTime now, Effects& out) {
  auto members = event.members;
  std::sort(members.begin(), members.end(),
            [](const auto& a, const auto& b) { return a.member < b.member; });
  bounds_.memory.clear();
  for (const auto& info : members) bounds_.memory[info.member.worker] = info.device.max_micro_batch;
  bounds_.rests = event.rests;
  auto plan = plan_for(members);
  if (!plan) {
    out.emplace_back(RefuseGroup{plan.error()});
    return;
  }
  watch_restarts(members, now);
  members_.clear();
  for (const auto& info : members) members_[info.member.worker] = info.member.attempt;
  monitor_.set_members(members);
  take(*plan, out);
  state_ = AwaitingPlan{true};
  put_in_force();
}

void Controller::on(const GroupObserved& event, MonoTime /*now*/, Effects& /*out*/) {
  members_.clear();
  in_force_.clear();
  plan_ = plan_of_nobody();
  state_ = AwaitingPlan{true};
  monitor_.set_members(event.members);
}

// It is journaled before there is a group, too, so it has what the next incarnation goes on from.
wire::Plan Controller::plan_of_nobody() const {
  return {last_version_, {}, config_.rate, config_.planned_threshold};
}

void Controller::put_in_force() {
  in_force_.clear();
  for (const wire::PlanEntry& entry : plan_.entries) in_force_[entry.worker] = entry;
}

void Controller::on(const PlanTookEffect& event, MonoTime now, Effects& /*out*/) {
  const auto* awaiting = std::get_if<AwaitingPlan>(&state_);
  if (event.version != plan_.version || awaiting == nullptr) return;
  put_in_force();
  count_restarts(now);
  monitor_.plan_changed(now, plan_);
  // A new group warms up: caches fill, connections open, memory is allocated for the first time.
  const Duration window = config_.monitor.transient_window;
  state_ = Settling{now + (awaiting->of_new_group ? window : window / 2)};
  view_.plan = event.version;
}

void Controller::on(const MetricsReported& event, MonoTime now, Effects& /*out*/) {
  monitor_.step(event.observation, now);
  const std::uint32_t most = event.observation.metrics.sum.max_micro_batch;
  const auto member = members_.find(event.observation.member.worker);
  if (most == 0 || member == members_.end() || member->second != event.observation.member.attempt) {
    return;
  }
  // The worker itself keeps to it from the first; plans do from the next.
  std::uint32_t& limit = bounds_.memory[member->first];
  limit = limit == 0 ? most : std::min(limit, most);
}

void Controller::on(const ServerMetricsReported& event, MonoTime now, Effects& /*out*/) {
  server_watch_.step(event.server, event.requests, event.busy_us, now);
}

void Controller::on(const TimePassed& event, MonoTime now, Effects& out) {
  view_.workers = monitor_.view(now);
  for (WorkerView& worker : view_.workers) {
    const auto entry = in_force_.find(worker.member.worker);
    if (entry == in_force_.end()) continue;  // only observed
    worker.share = share_of(entry->second);
    worker.micro_batch = entry->second.micro_batch;
  }
  server_watch_.set_servers(event.servers);
  view_.servers = server_watch_.view(now);
  if (solution_->needs_curves()) view_.curves = monitor_.curves();
  view_.rules = config_.rules;
  view_.transient_window = config_.monitor.transient_window;
  view_.persistent_window = config_.monitor.persistent_window;
  view_.remaining = event.remaining;
  view_.places = event.places;
  view_.pending_time = event.pending_time;
  view_.backups = event.backups;
  view_.least_backups = event.least_backups;
  view_.learning_rate = config_.rate;
  view_.threshold = threshold();
  view_.optimizer = config_.optimizer;
  view_.restart_time = restart_time_ ? restart_time_ : event.startup;
  bounds_.rests = event.rests;
  view_.bounds = bounds_;
  if (!settled(now) || keep_domains_together(now, out)) return;
  if (!solution_->looks_at_visits()) ask(now, out);
}

// Returns whether it sent a plan.
bool Controller::keep_domains_together(MonoTime now, Effects& out) {
  const auto longer = longest_domain(plan_, bounds_.rests);
  if (!longer) return false;
  AdjustBatch action;
  action.because_of = longer->worker;
  for (const wire::PlanEntry& entry : plan_.entries) {
    action.shares.push_back({entry.worker, share_of(entry)});
  }
  const auto plan = plan_from(action);
  if (!plan || same_parts(*plan, plan_)) return false;
  consider(
      action,
      fmt::format("the workers of {} have {:.0f} % of the records that are left to train, and "
                  "of each step {:.0f} %: their part follows, so that all domains end together",
                  longer->domain, 100 * longer->of_rest, 100 * longer->of_plan),
      now, out);
  return !settled(now);
}

void Controller::ask(MonoTime now, Effects& out) {
  const Decision decision = solution_->decide(view_, now);
  for (const Action& action : decision.actions) consider(action, decision.reason, now, out);
}

void Controller::on(const VisitTold& event, MonoTime now, Effects& out) {
  if (view_.visit == event.visit) return;
  view_.visit = event.visit;
  view_.threshold = threshold();
  const bool in_force = std::holds_alternative<Settling>(state_);
  if (in_force && solution_->looks_at_visits()) ask(now, out);
}

// The drastic actions of the last hour are counted. One that exceeds the limit is only advised.
ActionOutcome Controller::outcome_for(const Action& action, MonoTime now) {
  if (config_.mode == Mode::kObserve) return ActionOutcome::kObserved;
  if (config_.mode == Mode::kAdvise) return ActionOutcome::kAdvised;
  if (!is_drastic(action)) return ActionOutcome::kApplied;
  const bool allowed =
      std::find(config_.allow.begin(), config_.allow.end(), kind_of(action)) != config_.allow.end();
  while (!drastic_.empty() && now - drastic_.front() >= std::chrono::hours(1)) drastic_.pop_front();
  return allowed && drastic_.size() < config_.max_actions_per_hour ? ActionOutcome::kApplied
                                                                   : ActionOutcome::kAdvised;
}

// The solution repeats the same wish at every tick until it is granted. It is recorded once in a
// persistent window, and a drastic one is not repeated sooner either.
bool Controller::said_lately(const Action& action, MonoTime now) {
  std::erase_if(said_, [&](const auto& entry) {
    return now - entry.second >= config_.monitor.persistent_window;
  });
  return !said_.emplace(std::pair(std::string(kind_of(action)), target_of(action)), now).second;
}

void Controller::consider(const Action& action, const std::string& reason, MonoTime now,
                          Effects& out) {
  const ActionOutcome outcome = outcome_for(action, now);
  if (outcome == ActionOutcome::kApplied && !is_drastic(action))
    return apply(action, reason, now, out);
  if (said_lately(action, now)) return;
  if (outcome == ActionOutcome::kApplied) return apply(action, reason, now, out);
  if (outcome == ActionOutcome::kAdvised)
    advised_.insert_or_assign({std::string(kind_of(action)), target_of(action)},
                              Advice{action, reason});
  record(action, reason, outcome, now, out);
}

bool Controller::is_trained_by(Member member) const {
  const auto worker = members_.find(member.worker);
  return worker != members_.end() && worker->second == member.attempt;
}

bool Controller::is_present(Member member) const {
  return is_trained_by(member) ||
         std::ranges::find(view_.servers, member, &ServerView::member) != view_.servers.end();
}

Status Controller::check_approved(const std::string& kind, const std::string& target) const {
  const auto found = advised_.find({kind, target});
  if (found == advised_.end()) {
    return fail(ErrorKind::kRefused,
                "{}{}{} is not advised any more: if it still makes sense it will be again", kind,
                target.empty() ? "" : " of ", target);
  }
  const Action& action = found->second.action;
  const Member* member = nullptr;
  if (const auto* a = std::get_if<KillRestart>(&action)) member = &a->member;
  if (const auto* a = std::get_if<Evict>(&action)) member = &a->member;
  if (member != nullptr && !is_present(*member)) {
    return fail(ErrorKind::kRefused, "attempt {} of {} is no member of the group any more",
                member->attempt, member->worker);
  }
  if (const auto* batch = std::get_if<AdjustBatch>(&action)) {
    const auto plan = plan_from(*batch);
    if (!plan) return tl::unexpected(plan.error());
  }
  return {};
}

void Controller::on(const ActionApproved& event, MonoTime now, Effects& out) {
  if (!check_approved(event.kind, event.target)) return;
  const Advice advice = advised_.extract({event.kind, event.target}).mapped();
  apply(advice.action, fmt::format("{} (approved by {})", advice.reason, event.who), now, out);
}

// The decision is ignored if the plan that the program saw has changed, or is about to. A program
// may immediately repeat a decision or reverse it, so the effect of the last one must settle first,
// as with plans.
void Controller::on(const ProgramDecided& event, MonoTime now, Effects& out) {
  if (!settled(now) || event.plan != plan_.version) return;
  for (const Action& action : event.decision.actions) {
    const auto* backups = std::get_if<BackupWorkers>(&action);
    if (backups != nullptr && view_.backups == backups->count) continue;
    consider(action, event.decision.reason, now, out);
  }
  if (auto* settling = std::get_if<Settling>(&state_)) {
    settling->until = now + config_.monitor.transient_window / 2;
  }
}

void Controller::on(const ActionRefused& event, MonoTime /*now*/, Effects& /*out*/) {
  if (is_drastic(event.action) && !drastic_.empty()) drastic_.pop_back();
}

void Controller::record(const Action& action, const std::string& reason, ActionOutcome outcome,
                        MonoTime now, Effects& out) const {
  out.emplace_back(
      RecordAction{now, std::string(kind_of(action)), target_of(action), reason, outcome});
}

void Controller::apply(const Action& action, const std::string& reason, MonoTime now,
                       Effects& out) {
  const auto* batch = std::get_if<AdjustBatch>(&action);
  if (const auto* rate = std::get_if<AdjustLearningRate>(&action)) {
    return apply_rate(rate->factor, reason, now, out);
  }
  if (const auto* sync = std::get_if<SetSync>(&action)) {
    return apply_threshold(sync->threshold, reason, now, out);
  }
  if (batch == nullptr) {
    if (is_drastic(action)) drastic_.push_back(now);
    const auto* restart = std::get_if<KillRestart>(&action);
    if (restart != nullptr && is_trained_by(restart->member)) expect_restart(restart->member, now);
    out.emplace_back(PerformAction{action, reason});
    return;
  }
  const auto plan = plan_from(*batch);
  if (!plan) return refuse(action, reason, plan.error().message, now, out);
  if (same_parts(*plan, plan_)) return;
  record(action, reason, ActionOutcome::kApplied, now, out);
  take(*plan, out);
}

void Controller::refuse(const Action& action, const std::string& reason, const std::string& why,
                        MonoTime now, Effects& out) {
  if (said_lately(action, now)) return;
  record(action, fmt::format("{} (refused: {})", reason, why), ActionOutcome::kRefused, now, out);
}

// What changes comes with a plan of its own, so that all members change it at one step, and a
// member that joins later gets it too.
void Controller::plan_anew(Effects& out) {
  wire::Plan plan = plan_;
  plan.version = last_version_.next();
  take(plan, out);
}

void Controller::apply_rate(double factor, const std::string& reason, MonoTime now, Effects& out) {
  const AdjustLearningRate action{factor};
  if (!(factor >= kLeastRate && factor <= kMostRate)) {
    return refuse(action, reason,
                  fmt::format("{} is not from {} to {} of the job's learning rate", factor,
                              kLeastRate, kMostRate),
                  now, out);
  }
  if (factor == config_.rate) return;
  config_.rate = factor;
  record(action, reason, ActionOutcome::kApplied, now, out);
  plan_anew(out);
}

void Controller::apply_threshold(double wanted, const std::string& reason, MonoTime now,
                                 Effects& out) {
  const SetSync action{wanted};
  if (!(wanted >= 0 && wanted <= kMostThreshold)) {
    return refuse(action, reason,
                  fmt::format("a threshold is from 0 to {}, not {}", kMostThreshold, wanted), now,
                  out);
  }
  if (!config_.threshold) {
    return refuse(action, reason, "only trainer.sync = \"gaia\" has a threshold", now, out);
  }
  if (threshold() == wanted) return;
  config_.planned_threshold = wanted;
  record(action, reason, ActionOutcome::kApplied, now, out);
  plan_anew(out);
}

std::optional<double> Controller::threshold() const {
  return config_.planned_threshold ? config_.planned_threshold : config_.threshold;
}

}  // namespace control
}  // namespace antdt::ctl
