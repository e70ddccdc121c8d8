#include "ctl/job/subjects/controlling.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/overloaded.h"
#include "ctl/job/parts.h"
#include "ctl/job/reporter.h"

namespace antdt::ctl::job {
namespace {

constexpr Duration kRepeatPlan = std::chrono::seconds(2);

}  // namespace

void Controlling::on(const ControlTickPassed& /*e*/, Work& work) {
  work.then(attempts());
  if (!parts_.trains()) return;
  repeat_plan(work);
  work.then(tick());
  work.then(VerdictsDue{});
}

// The next attempt of a process that leaves follows at once if a host has room.
control::AttemptsSeen Controlling::attempts() const {
  control::AttemptsSeen seen;
  for (const WorkerProcess& w : parts_.lifecycle.workers()) {
    if (w.is_server() || !w.running() || w.stays_away()) continue;
    seen.attempts.push_back({w.place.worker, w.leaving() ? w.attempt.next() : w.attempt});
  }
  return seen;
}

// What the controller needs to know of the hosts. While a worker waits for room, nobody can say how
// long another one would wait.
control::TimePassed Controlling::tick() const {
  const std::uint64_t all = samples_total(parts_);
  const Lifecycle& life = parts_.lifecycle;
  control::TimePassed tick;
  tick.remaining = all - std::min(all, samples_done(parts_));
  for (const Hosts::Place& p : life.hosts().places(life.workers(), life.seconds())) {
    tick.places.push_back({parts_.members.host_name(p.host->host), p.room});
  }
  const bool busy = std::ranges::any_of(
      life.workers(), [](const WorkerProcess& w) { return w.state == WorkerProcess::kWaiting; });
  if (!busy && !tick.places.empty()) tick.pending_time = Duration::zero();
  tick.startup = parts_.times.startup();
  tick.rests = parts_.members.rests_of(parts_.group.members());
  if (parts_.config.spec.sync == SyncStrategy::kPsBsp) tick.backups = parts_.servers.backups();
  tick.least_backups = parts_.config.spec.backups;
  for (const WorkerProcess& w : life.workers()) {
    if (!w.is_server() || !w.running() || w.leaving()) continue;
    const ServerRole role = parts_.servers.placement().role_of(w.member());
    if (role == ServerRole::kNone || role == ServerRole::kJoining) continue;
    tick.servers.push_back({w.member(), parts_.members.host_name(w.place.host), role});
  }
  return tick;
}

void Controlling::on(const ApprovalReceived& e, Work& work) {
  if (!check_approve(e.number)) return;
  const ActionReport& action = *parts_.past.action(e.number);
  work.then(control::ActionApproved{action.kind, action.target, e.who});
}

void Controlling::on(const DecisionReceived& e, Work& work) {
  if (parts_.trains()) work.then(control::ProgramDecided{e.decision, e.plan});
}

Status Controlling::check_approve(std::uint64_t number) const {
  const ActionReport* const known = parts_.past.action(number);
  if (known == nullptr) {
    return fail(ErrorKind::kUsage, "this job has no action {}; antdt explain lists them", number);
  }
  const ActionReport& action = *known;
  if (by_name<ActionOutcome>(action.outcome) != ActionOutcome::kAdvised) {
    return fail(ErrorKind::kRefused,
                "action {} ({}{}{}) was {}, not advised: antdt explain says which are advised",
                number, action.kind, action.target.empty() ? "" : " ", action.target,
                action.outcome);
  }
  return parts_.controller.check_approved(action.kind, action.target);
}

void Controlling::carry_out(const control::Effect& effect, Work& work) {
  std::visit(Overloaded{
                 [&](const control::SendPlan& e) { announce(e.plan, work); },
                 [&](const control::RecordAction& e) { record(e, work); },
                 [&](const control::PerformAction& e) { perform(e, work); },
                 [&](const control::RefuseGroup& e) {
                   work.then(lifecycle::JobFailed{ExitClass::kConfiguration, 2, e.error.message});
                 },
             },
             effect);
}

void Controlling::announce(const wire::Plan& plan, Work& work) {
  follow_.clear();
  plan_said_ = work.now;
  work.save_image();
  shard_server::ledger::SharesPlanned shares;
  for (const wire::PlanEntry& entry : plan.entries) {
    shares.shares.push_back({entry.worker, share_of(entry), 0});
  }
  parts_.records.step(shares, work);
  parts_.group.set_rate(plan.rate, work);
  work.then(PlanKept{});
}

void Controlling::on(const PlanKept& /*e*/, Work& work) {
  // The plan of a group that is about to settle is sent in its Settle message.
  if (parts_.lifecycle.phase().phase == 0 || !parts_.group.whole()) return;
  for (const Member member : parts_.group.members()) {
    work.send(member, parts_.group.generation(), plan_of(member.worker));
  }
}

void Controlling::trains_with(Member member, PlanVersion version, Work& work) {
  if (version == PlanVersion{}) return;
  if (version == parts_.controller.plan().version) follow_.insert(member);
  work.then(control::PlanTookEffect{version});
}

// An agent that begins anew drops what was on its way to its workers. In a collective, one member
// that has not heard of the plan keeps all others from it, and the controller waits for it.
void Controlling::repeat_plan(Work& work) {
  if (parts_.lifecycle.phase().phase == 0 || !parts_.group.whole()) return;
  if (work.now - plan_said_ < kRepeatPlan) return;
  plan_said_ = work.now;
  for (const Member member : parts_.group.members()) {
    if (follow_.contains(member)) continue;
    wire::Plan own = plan_of(member.worker);
    if (!own.entries.empty()) {
      work.send(member, parts_.group.generation(), std::move(own));
    }
  }
}

// Entries are ordered by worker.
wire::Plan Controlling::plan_of(WorkerId worker) const {
  const wire::Plan& plan = parts_.controller.plan();
  wire::Plan own{plan.version, {}, plan.rate, plan.threshold};
  const auto entry = std::ranges::lower_bound(plan.entries, worker, {}, &wire::PlanEntry::worker);
  if (entry != plan.entries.end() && entry->worker == worker) own.entries.push_back(*entry);
  return own;
}

void Controlling::record(const control::RecordAction& action, Work& work) {
  const std::uint64_t number =
      parts_.past.add(ActionReport{0, parts_.lifecycle.seconds(), action.kind, action.target,
                                   action.reason, std::string(name_of(action.outcome))});
  work.note("action",
            fmt::format("{}{}{} ({}): {}", action.kind, action.target.empty() ? "" : " ",
                        action.target, action.outcome, action.reason),
            fmt::format(R"("number":{},"action":{},"target":{},"outcome":{})", number,
                        nlohmann::json(action.kind).dump(), nlohmann::json(action.target).dump(),
                        nlohmann::json(name_of(action.outcome)).dump()));
}

void Controlling::record(const control::PerformAction& e, const Status& possible, Work& work) {
  control::RecordAction action{work.now, std::string(kind_of(e.action)), target_of(e.action),
                               e.reason, ActionOutcome::kApplied};
  if (!possible) {
    action.reason += fmt::format(" (refused: {})", possible.error().message);
    action.outcome = ActionOutcome::kRefused;
    work.then(control::ActionRefused{e.action});
  }
  record(action, work);
}

template <class Wish>
void Controlling::ask(const Wish& wish, const control::PerformAction& e, Work& work) {
  const Status possible = parts_.operators.check(wish);
  record(e, possible, work);
  if (possible) parts_.operators.ask(wish, work);
}

void Controlling::perform(const control::PerformAction& e, Work& work) {
  const Duration grace = parts_.config.spec.stop_grace;
  std::visit(
      Overloaded{
          [&](const KillRestart& a) {
            ask(lifecycle::RestartRequested{a.member, e.reason, grace, a.host}, e, work);
          },
          [&](const Evict& a) {
            ask(lifecycle::EvictionRequested{to_string(a.member.worker), e.reason, grace}, e, work);
          },
          [&](const Resize& a) {
            ask(lifecycle::WorkerCountRequested{a.count, e.reason}, e, work);
          },
          [&](const BackupWorkers& a) {
            if (parts_.config.spec.sync == SyncStrategy::kPsBsp) {
              record(e, {}, work);
              return work.then(servers::TermsSet{a.count});
            }
            record(e,
                   fail(ErrorKind::kUsage,
                        "backup workers need sync = \"ps-bsp\", this job has \"{}\"",
                        parts_.config.spec.sync),
                   work);
          },
          [](const auto&) {},  // this is sent as a plan
      },
      e.action);
}

void Controlling::on(const VerdictsDue& /*e*/, Work& work) {
  if (parts_.traced.ranks().hang()) return;  // nobody makes steps, and that is said
  for (std::string& news : parts_.verdicts.look(parts_.controller.view(), work.now)) {
    work.note("verdict", std::move(news));
  }
}

}  // namespace antdt::ctl::job
