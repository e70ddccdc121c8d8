// Effects of the parts: journal records, messages, and what one part's decision means to another.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/overloaded.h"
#include "core/wire/time_sums.h"
#include "ctl/job/job_machine.h"
#include "shard_server/accounts/evaluation.h"

namespace antdt::ctl {

void JobMachine::note(std::string kind, std::string text, std::string extra_json) {
  message_ = text;
  out_->emplace_back(out::Note{std::move(kind), std::move(text), std::move(extra_json)});
}

void JobMachine::send(Member to, Generation generation, out::ToWorkerBody body, std::uint64_t seq) {
  out_->emplace_back(out::ToWorker{to, generation, seq, std::move(body)});
}

std::vector<Member> JobMachine::members() const {
  if (uses_servers()) return servers_.workers().admitted();
  std::vector<Member> all = loose_members_;
  for (const ExpectedMember& e : membership_.members()) all.push_back(e.member);
  return all;
}

void JobMachine::send_to_members(const out::ToWorkerBody& body) {
  for (const Member member : members()) send(member, generation(), body);
}

void JobMachine::send_to_running(const out::ToWorkerBody& body) {
  for (const WorkerProcess& w : lifecycle_.workers()) {
    if (w.running() && !w.is_server()) send(w.member(), generation(), body);
  }
  if (config_.spec.external) send_to_members(body);
}

// With the records of the phase that members need not count any more, or with who writes the
// model.
wire::PhaseStart JobMachine::with_committed(wire::PhaseStart start) const {
  if (start.phase == ledger_.phase().number) {
    start.committed = ledger_.committed() + ledger_.skipped();
  }
  if (start.what != wire::PhaseKind::kFinish) return start;
  const auto& group = membership_.members();
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    if (group[rank].member == model_writer_) start.writer = static_cast<std::uint32_t>(rank);
  }
  start.tries = model_tries_;
  return start;
}

// ------------------------------------------------------------------- lifecycle

void JobMachine::run(const std::vector<job::Effect>& effects) {
  for (const job::Effect& effect : effects) {
    std::visit(
        Overloaded{
            [&](const job::SaveImage&) { image_dirty_ = true; },
            [&](const job::StartWorker& e) {
              started_[e.member] = now_;
              out_->emplace_back(e);
            },
            [&](const job::StopWorker& e) { out_->emplace_back(e); },
            [&](const job::PrepareGang& e) { out_->emplace_back(e); },
            [&](const job::ExpectMembers& e) { expect_group(e.workers); },
            [&](const job::WorkerGone& e) { on_gone(e); },
            [&](const job::OpenPhase& e) { open_phase(e.start); },
            [&](const job::AnnouncePhase& e) { announce_phase(e.start); },
            [&](const job::OrderCheckpoint& e) {
              cut_phase_ = ledger_.phase().number;
              uses_servers() ? feed(servers::Input(servers::CutOrdered{e.number, e.last}))
                             : send_to_members(wire::CheckpointOrder{e.number});
            },
            [&](const job::ServersChange& e) {
              feed(servers::Input(servers::GroupResized{e.count}));
            },
            [&](const job::ServersGoOn&) { feed(servers::Input(servers::ResizeAbandoned{})); },
            [&](const job::LeaveWorker& e) { send(e.member, generation(), e.leave); },
            [&](const job::LeaveAll& e) { send_to_running(e.leave); },
            [&](const job::Note& e) { note(e.kind, e.text); },
            [&](const job::End& e) { end(e.outcome); },
        },
        effect);
  }
}

void JobMachine::on_gone(const job::WorkerGone& gone) {
  vitals_.forget(gone.member);
  vanished_.erase(gone.member);
  if (begun_ && begun_->store.writer == gone.member) {
    begun_failed(fmt::format("{} ended before it was written", gone.member.worker));
  }
  const WorkerId id = gone.member.worker;
  WorkerReport& all = earlier_[id];
  WorkerReport last = measured_[id];
  if (const auto started = started_.find(gone.member); started != started_.end()) {
    last.wall_seconds = to_seconds(now_ - started->second);
    // What the worker cannot see itself: being started, and its end.
    last.time.other += std::max(0.0, last.wall_seconds - total(last.time));
    started_.erase(started);
  }
  all.samples += last.samples;
  all.wall_seconds += last.wall_seconds;
  all.time += last.time;
  measured_.erase(id);
  if (config_.spec.protocol != Protocol::kAntdt) return;
  if (uses_servers()) {
    const auto holder = ledger_.holders().find(gone.member.worker);
    if (gone.suspect && holder != ledger_.holders().end()) {
      // Judged when its home has spoken; it has no share any more then.
      suspected_[gone.member] = kSuspectSteps * holder->second.step_records;
    }
    feed(servers::Input(servers::GroupMemberLost{gone.member, gone.reason}));
  } else if (lifecycle_.collective()) {
    if (gone.suspect) dead_suspects_.push_back(gone.member);
    feed(MembershipEvent(MemberGone{gone.member, gone.reason, gone.in_order, gone.suspect}));
  } else if (std::erase(loose_members_, gone.member) > 0) {
    feed(shard_server::ledger::Input(shard_server::ledger::MemberLost{gone.member}));
  }
}

// From `place` on, `records` of what it holds may be why it died.
void JobMachine::suspect(Member dead, std::uint64_t place, std::uint64_t records) {
  const auto holder = ledger_.holders().find(dead.worker);
  const bool known = holder != ledger_.holders().end() && holder->second.attempt == dead.attempt;
  if (!known || ledger_.phase().kind != shard_server::PhaseKind::kTrain) return;
  suspects_.add(
      {ledger_.phase().epoch, dead, shard_server::hand_of(holder->second, place, records)});
  image_dirty_ = true;
}

// Whether so many have died of the same records that the job ends.
bool JobMachine::stop_for_suspects() {
  const std::uint32_t limit = config_.ledger.retry_limit;
  const auto at = suspects_.shared_by(limit);
  if (!at) return false;
  const shard_server::SuspiciousDeath& last = suspects_.deaths().back();
  feed(job::Event(job::Failed{
      "data", 4,
      shard_server::suspects_text(config_.ledger.run, last.epoch, *at, limit, last.member)}));
  return true;
}

void JobMachine::open_phase(const wire::PhaseStart& start) {
  // Its workers have all said what they did.
  if (uses_servers() && ledger_.phase().kind == shard_server::PhaseKind::kTrain &&
      ledger_.phase().number > 0) {
    close_epoch(ledger_.phase().epoch);
  }
  pushed_.clear();
  if (start.what == wire::PhaseKind::kTrain || start.what == wire::PhaseKind::kEval) {
    const bool train = start.what == wire::PhaseKind::kTrain;
    if (epochs_.size() <= start.epoch.value) epochs_.resize(start.epoch.value + 1);
    if (train) progress_.begin_phase(start.phase, now_);
    note("phase", fmt::format("epoch {}: {} {} records", start.epoch.value + 1,
                              train ? "training on" : "evaluating on", start.records));
    feed(shard_server::ledger::Input(shard_server::ledger::PhaseOpened{
        start.phase, train ? shard_server::PhaseKind::kTrain : shard_server::PhaseKind::kEval,
        start.epoch}));
  } else {
    feed(shard_server::ledger::Input(shard_server::ledger::JobFinished{}));
    finish_said_ = now_;
    expect_steps();
  }
  send_to_members(start);
}

void JobMachine::announce_phase(const wire::PhaseStart& start) {
  send_to_members(with_committed(start));
  // All of it may be committed already: nobody else will say so.
  if (ledger_.complete() && ledger_.phase().number == start.phase) {
    feed(job::Event(job::PhaseDrained{start.phase}));
  }
}

void JobMachine::end(const Outcome& outcome) {
  note("end", outcome.first_cause.empty() ? fmt::format("the job is {}", outcome.state)
                                          : outcome.first_cause);
  const wire::PhaseStart open = lifecycle_.phase();
  if (open.what == wire::PhaseKind::kTrain && open.epoch.value < epochs_.size() &&
      epochs_[open.epoch.value].samples == 0) {
    fill_epoch(open.epoch);  // cut short
  }
  if (outcome.state == "done" && config_.spec.protocol != Protocol::kAntdt) {
    feed(shard_server::ledger::Input(shard_server::ledger::JobFinished{}));
  }
  ended_ = true;
  remember_moment(true);
  out_->emplace_back(job::End{outcome});
}

// ------------------------------------------------------------------ membership

void JobMachine::run(const std::vector<MembershipEffect>& effects) {
  for (const MembershipEffect& effect : effects) {
    std::visit(Overloaded{
                   [&](const GenerationBegun&) { image_dirty_ = true; },
                   [&](const SendForm& e) {
                     const bool reads = e.form.rank == e.form.reader;
                     send_to_reader(e.to, e.generation, e.form, reads ? e.form.restore : "");
                   },
                   [&](const SendRoster& e) { send(e.to, e.generation, e.roster); },
                   [&](const Settled& e) { on_settled(e); },
                   [&](const SendRegroup& e) {
                     note("regroup", e.reason);
                     for (const Member to : e.to) send(to, e.generation, wire::Regroup{e.reason});
                   },
                   [&](const SendAbort& e) {
                     for (const Member to : e.to) send(to, e.generation, wire::Abort{e.reason});
                   },
                   [&](const GenerationBroken& e) {
                     note("generation-broken",
                          fmt::format("generation {} is over: {}", e.generation, e.reason));
                   },
                   [&](const CannotSettle& e) {
                     feed(job::Event(job::Failed{e.exit_class, e.code, e.reason}));
                   },
                   [&](const StateLost&) {
                     if (!lifecycle_.outcome()) out_->emplace_back(out::FindCheckpoint{});
                   },
                   [&](const Unresponsive& e) { unresponsive(e); },
               },
               effect);
  }
  if (!group_settled_ || membership_.settled()) return;
  group_settled_ = false;
  image_dirty_ = true;
  expect_steps();
  feed(job::Event(job::GenerationOver{}));
}

// Whoever reads the checkpoint holds up the others, who can only wait for it.
void JobMachine::unresponsive(const Unresponsive& e) {
  const IoWatch& io = vitals_.io();
  const auto reads = [&](Member m) { return io.reads(m); };
  if (!reads(e.member) && std::ranges::any_of(membership_.missing(), reads)) return;
  const std::string still = io.stands_still(e.member, now_);
  feed(job::Event(job::Hung{e.member, still.empty() ? e.what : still}));
}

Monitor::MemberInfo JobMachine::info_of(Member member, std::string host) const {
  Device device = devices_.of(member, host);
  return {member, std::move(host), std::move(device)};
}

void JobMachine::on_settled(const Settled& settled) {
  shard_server::ledger::GenerationSettled to_ledger{settled.generation, {}, {}};
  std::vector<Monitor::MemberInfo> group;
  std::vector<Member> members;
  for (const ExpectedMember& e : settled.members) {
    members.push_back(e.member);
    group.push_back(info_of(e.member, e.host));
    group.back().rank = static_cast<std::uint32_t>(group.size() - 1);
  }
  to_ledger.members = members;
  // Places of an earlier phase are all committed: it is complete.
  if (settled.phase != 0 && settled.phase == ledger_.phase().number &&
      ledger_.phase().kind == shard_server::PhaseKind::kTrain) {
    for (const BasePlace& p : settled.places) {
      to_ledger.places.push_back({p.member, p.place, p.lost});
      if (!p.lost) continue;
      const auto holder = ledger_.holders().find(p.member.worker);
      if (holder == ledger_.holders().end()) continue;
      suspect(p.member, p.place, kSuspectSteps * holder->second.step_records);
    }
  }
  dead_suspects_.clear();
  feed(shard_server::ledger::Input(to_ledger));
  if (stop_for_suspects()) return;
  const auto& holders = ledger_.holders();
  const auto first = holders.find(members.front().worker);
  if (first == holders.end() || first->second.generation != settled.generation) {
    return feed(job::Event(job::Failed{
        "program", 1,
        fmt::format("generation {} does not fit the ledger (its log line names the member): the "
                    "trainer counted records that it was never granted",
                    settled.generation)}));
  }
  group_settled_ = true;
  note_startup(members);
  remember({history_.settled(settled, membership_.lineage())});
  feed(control::Input(control::GroupFormed{group}));
  if (controller_.plan().entries.empty()) return;  // impossible, and said so
  image_dirty_ = true;
  for (const Member m : members) {
    send(m, settled.generation, wire::Settle{settled.step, plan_of(m.worker)});
  }
  expect_steps();
  feed(job::Event(job::GenerationSettled{settled.generation, members}));
}

// Of the first group: nobody has been started again yet.
void JobMachine::note_startup(const std::vector<Member>& members) {
  if (startup_) return;
  for (const Member m : members) {
    const auto started = started_.find(m);
    if (started == started_.end()) continue;
    startup_ = std::max(startup_.value_or(Duration::zero()), now_ - started->second);
  }
}

// ------------------------------------------------------------------ controller

void JobMachine::run(const control::Effects& effects) {
  for (const control::Effect& effect : effects) {
    std::visit(Overloaded{
                   [&](const control::SendPlan& e) { announce_plan(e.plan); },
                   [&](const control::RecordAction& e) { record_action(e); },
                   [&](const control::PerformAction& e) { perform(e); },
                   [&](const control::RefuseGroup& e) {
                     feed(job::Event(job::Failed{"configuration", 2, e.error.message}));
                   },
               },
               effect);
  }
}

// What the controller needs to know of hosts. Who has no place yet waits for room:
// then nobody can say how long another one would wait.
control::TimePassed JobMachine::control_tick() const {
  const std::uint64_t all = samples_total();
  control::TimePassed tick;
  tick.remaining = all - std::min(all, samples_done());
  for (const Hosts::Place& p :
       lifecycle_.hosts().places(lifecycle_.workers(), lifecycle_.seconds()))
    tick.places.push_back({host_name(p.host->host), p.room});
  const bool busy = std::ranges::any_of(lifecycle_.workers(), [](const WorkerProcess& w) {
    return w.state == WorkerProcess::kWaiting;
  });
  if (!busy && !tick.places.empty()) tick.pending_time = Duration::zero();
  tick.startup = startup_;
  if (config_.spec.sync == SyncStrategy::kPsBsp) tick.backups = servers_.backups();
  for (const WorkerProcess& w : lifecycle_.workers()) {
    const std::string role =
        w.is_server() && w.running() ? servers_.placement().role_of(w.member()) : "";
    if (role.empty() || role == "joining" || w.leaving()) continue;
    tick.servers.push_back({w.member(), host_name(w.place.host), role});
  }
  return tick;
}

Status JobMachine::check_approve(std::uint64_t number) const {
  const ActionReport* const known = past_.action(number);
  if (known == nullptr) {
    return fail(ErrorKind::kUsage, "this job has no action {}; antdt explain lists them", number);
  }
  const ActionReport& action = *known;
  if (action.outcome != "advised") {
    return fail(ErrorKind::kRefused, "action {} ({} {}) was {}, not advised", number, action.kind,
                action.target, action.outcome);
  }
  return controller_.check_approved(action.kind, action.target);
}

void JobMachine::on(const in::Approve& e) {
  if (!check_approve(e.number)) return;
  const ActionReport& action = *past_.action(e.number);
  feed(control::Input(control::ActionApproved{action.kind, action.target, e.who}));
}

void JobMachine::on(const in::Decided& e) {
  if (trains()) feed(control::Input(control::ProgramDecided{e.decision, e.plan}));
}

const ClusterView* JobMachine::view_to_decide(MonoTime now) const {
  return trains() && controller_.settled(now) ? &controller_.view() : nullptr;
}

void JobMachine::perform(const control::PerformAction& e) {
  const auto ask = [&](const auto& event) {
    const Status possible = check(event);
    if (possible) return on(event);
    note("action", fmt::format("{} of {} cannot be done: {}", kind_of(e.action),
                               target_of(e.action), possible.error().message));
  };
  std::visit(
      Overloaded{
          [&](const KillRestart& a) {
            ask(job::RestartAsked{a.member, e.reason, config_.spec.stop_grace});
          },
          [&](const Evict& a) {
            ask(job::EvictAsked{to_string(a.member.worker), e.reason, config_.spec.stop_grace});
          },
          [&](const Resize& a) {
            ask(job::ResizeAsked{a.count, e.reason});
          },
          [&](const BackupWorkers& a) {
            if (config_.spec.sync == SyncStrategy::kPsBsp)
              return feed(servers::Input(servers::TermsSet{a.count}));
            note("action", fmt::format("backup workers need sync = \"ps-bsp\", this job has \"{}\"",
                                       config_.spec.sync));
          },
          [](const auto&) {},  // what comes as a plan
      },
      e.action);
}

void JobMachine::announce_plan(const wire::Plan& plan) {
  image_dirty_ = true;
  shard_server::ledger::SharesPlanned shares;
  for (const wire::PlanEntry& entry : plan.entries) {
    shares.shares.push_back({entry.worker, share_of(entry), 0});
  }
  feed(shard_server::ledger::Input(shares));
  if (uses_servers()) feed(servers::Input(servers::TermsSet{{}, plan.rate}));
  // The plan of a group that is about to settle travels in its Settle.
  if (lifecycle_.phase().phase == 0 || !group_is_whole()) return;
  for (const Member member : members()) send(member, generation(), plan_of(member.worker));
}

// A member is told its own part alone: with everybody's, a plan for thousands would
// be millions of entries. Entries rise by worker.
wire::Plan JobMachine::plan_of(WorkerId worker) const {
  const wire::Plan& plan = controller_.plan();
  wire::Plan own{plan.version, {}, plan.rate};
  const auto entry = std::ranges::lower_bound(plan.entries, worker, {}, &wire::PlanEntry::worker);
  if (entry != plan.entries.end() && entry->worker == worker) own.entries.push_back(*entry);
  return own;
}

void JobMachine::record_action(const control::RecordAction& action) {
  const std::uint64_t number = past_.add(ActionReport{
      0, lifecycle_.seconds(), action.kind, action.target, action.reason, action.outcome});
  note("action",
       fmt::format("{} {} ({}): {}", action.kind, action.target, action.outcome, action.reason),
       fmt::format(R"("number":{},"action":{},"target":{},"outcome":{})", number,
                   nlohmann::json(action.kind).dump(), nlohmann::json(action.target).dump(),
                   nlohmann::json(action.outcome).dump()));
}

// ---------------------------------------------------------------------- ledger

void JobMachine::feed(const shard_server::ledger::Input& event) {
  shard_server::ledger::Effects effects;
  ledger_.step(event, now_, effects);
  run(effects);
}

void JobMachine::persist_ledger(std::string bytes) {
  const Status counted = accounts_.apply(bytes);
  ANTDT_CHECK(counted.has_value(), "the accounts refuse what the ledger decided: {}",
              counted.error().message);
  out_->emplace_back(out::Persist{shard_server::kLedgerKind, std::move(bytes)});
}

void JobMachine::run(shard_server::ledger::Effects& effects) {
  using namespace shard_server::ledger;
  for (shard_server::ledger::Effect& effect : effects) {
    std::visit(
        Overloaded{
            [&](PersistRecord& e) { persist_ledger(std::move(e.bytes)); },
            [&](SendGrants& e) {
              if (const auto kept = history_.kept_through(e.generation)) e.grants.recorded = *kept;
              send(e.member, e.generation, std::move(e.grants), e.seq);
            },
            [&](SendRefusal& e) {
              out_->emplace_back(
                  out::Note{"refused",
                            fmt::format("{} (attempt {}) was refused: {}", e.member.worker,
                                        e.member.attempt, e.refused.reason),
                            ""});
              if (e.seq != 0) send(e.member, generation(), std::move(e.refused), e.seq);
            },
            [&](SendRecall& e) { send(e.member, e.generation, e.recall, e.number); },
            [&](EndPhase& e) { on_drained(e.phase); },
            [&](NoteReturned& e) {
              note("returned",
                   fmt::format("{} (attempt {}) gave back {} records of epoch {}", e.member.worker,
                               e.member.attempt, e.range.at.size(), e.epoch.value + 1));
            },
            [&](StopJob& e) {
              feed(job::Event(job::Failed{"data", 4, e.reason}));
            },
        },
        effect);
  }
}

void JobMachine::on_drained(std::uint64_t phase) {
  const wire::PhaseStart open = lifecycle_.phase();
  if (open.phase != phase) return;
  if (open.what == wire::PhaseKind::kEval) {
    const auto found = shard_server::metrics(ledger_.evaluation());
    epochs_.at(open.epoch.value).eval =
        EpochReport::Eval{found.auc, found.log_loss, found.accuracy, found.records};
    std::string text = fmt::format("epoch {}:", open.epoch.value + 1);
    if (found.auc) text += fmt::format(" AUC {:.4f}", *found.auc);
    if (found.accuracy) text += fmt::format(" accuracy {:.4f}", *found.accuracy);
    if (found.log_loss) text += fmt::format(" log loss {:.4f}", *found.log_loss);
    note("evaluated", fmt::format("{} on {} records", text, found.records));
  }
  image_dirty_ = true;
  feed(job::Event(job::PhaseDrained{phase}));
}

}  // namespace antdt::ctl
