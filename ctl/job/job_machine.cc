#include "ctl/job/job_machine.h"

#include <algorithm>
#include <utility>

#include "core/overloaded.h"
#include "core/wire/packet.h"
#include "ctl/job/reporter.h"

namespace antdt::ctl::job {
namespace {

// The job's clock is written this often, beside what a turn writes anyway.
constexpr Duration kKeepClock = std::chrono::seconds(1);

// What the journal holds of a job.
struct Known {
  explicit Known(const shard_server::LedgerConfig& config) : ledger(config) {}
  shard_server::Ledger ledger;
  shard_server::Accounts accounts;
  Past past;
  std::string image;
  ImageClock clock;
};

Status replay_snapshot(const shard_server::JournalEntry& entry,
                       const shard_server::LedgerConfig& config, Known& known) {
  ANTDT_TRY(const bool of_past, known.past.replay(entry));
  if (of_past) return {};
  if (entry.kind == shard_server::kLedgerKind) {
    ANTDT_TRY(known.ledger, shard_server::Ledger::restore(config, entry.bytes));
  } else if (entry.kind == shard_server::kAccountsKind) {
    ANTDT_TRY(known.accounts, shard_server::Accounts::restore(entry.bytes));
  } else if (entry.kind == kImageRecord) {
    known.image = entry.bytes;
  }
  return {};
}

Status replay_record(const shard_server::JournalEntry& entry, Known& known) {
  ANTDT_TRY(const bool of_past, known.past.replay(entry));
  if (of_past) return {};
  if (entry.kind == shard_server::kLedgerKind) {
    ANTDT_RETURN_IF_ERROR(known.ledger.replay(entry.bytes));
    ANTDT_RETURN_IF_ERROR(known.accounts.apply(entry.bytes));
  } else if (entry.kind == kImageRecord) {
    known.image = entry.bytes;
  } else if (entry.kind == kClockRecord) {
    ANTDT_TRY(known.clock, wire::decode<ImageClock>(entry.bytes));
  }
  return {};
}

// Adds each effect as an item of its own.
template <class Effects>
void add_effects(Effects effects, Agenda& agenda) {
  for (auto& effect : effects) {
    agenda.add<typename Effects::value_type>(std::move(effect));
  }
}

}  // namespace

Result<JobMachine> JobMachine::open(JobMachineConfig config, std::unique_ptr<Solution> solution,
                                    const shard_server::JournalContent& journal) {
  Known known(config.ledger);
  for (const shard_server::JournalEntry& entry : journal.snapshot) {
    ANTDT_RETURN_IF_ERROR(replay_snapshot(entry, config.ledger, known));
  }
  for (const shard_server::JournalEntry& entry : journal.records) {
    ANTDT_RETURN_IF_ERROR(replay_record(entry, known));
  }
  JobImage image;
  const bool is_known = !known.image.empty();
  if (is_known) {
    ANTDT_TRY(image, wire::decode<JobImage>(known.image));
    known.past.take_from(image);
    image.lifecycle.seconds = std::max(image.lifecycle.seconds, known.clock.seconds);
    config.control.last_version = image.plan.version;
    config.control.rate = image.plan.rate;
    // A resumed run whose file says another threshold than before begins anew from that.
    if (image.threshold == config.control.threshold) {
      config.control.planned_threshold = image.plan.threshold;
    }
    // The delivery promise is made once, and the accounts in the journal follow it, so it overrides
    // the job file.
    config.spec.delivery = known.accounts.delivery();
  }
  auto parts =
      std::make_unique<Parts>(std::move(config), std::move(solution), std::move(known.ledger),
                              std::move(known.accounts), std::move(known.past));
  if (is_known) parts->restore(std::move(image));
  return JobMachine(std::move(parts), is_known);
}

void JobMachine::step(const Input& input, MonoTime now, Effects& out) {
  if (parts_->ended) return;
  parts_->now = now;
  const auto before = static_cast<std::ptrdiff_t>(out.size());
  Work work(now, out, agenda_);
  take(input, work);
  while (Item* item = agenda_.next()) take(*item, work);
  parts_->persist_past(work);
  image_changed_ = image_changed_ || work.image_changed();
  const bool writes = std::any_of(out.begin() + before, out.end(), [](const Effect& e) {
    return std::holds_alternative<PersistRecord>(e);
  });
  if (writes) keep_clock(work);
  if (work.last_note()) parts_->last_note = *work.last_note();
}

// The image has the clock as well, but a job may train for long without a change of its image.
void JobMachine::keep_clock(Work& work) {
  if (!image_changed_ && work.now - clock_kept_ < kKeepClock) return;
  clock_kept_ = work.now;
  if (image_changed_) return;
  work.say(PersistRecord{kClockRecord, wire::encode(ImageClock{parts_->lifecycle.seconds()})});
}

void JobMachine::take(const Input& input, Work& work) {
  Parts& p = *parts_;
  std::visit(Overloaded{
                 [&](const WorkerSaid& e) { p.messages.on(e, work); },
                 [&](const HostWelcomed& e) { p.hosts.on(e, work); },
                 [&](const HostFellSilent& e) { p.hosts.on(e, work); },
                 [&](const PauseChanged& e) { p.watching.on(e, work); },
                 [&](const JobCreated& e) { p.records.on(e, work); },
                 [&](const IncarnationRecovered& e) { begin(e, work); },
                 [&](const ResumeOrdered& e) { begin(e, work); },
                 [&](const TimePassed& e) { p.watching.on(e, work); },
                 [&](const ControlTickPassed& e) { p.controlling.on(e, work); },
                 [&](const CheckpointStored& e) { p.checkpoints.on(e, work); },
                 [&](const CheckpointFound& e) { p.restoring.on(e, work); },
                 [&](const CheckpointFilesMoved& e) { p.restoring.on(e, work); },
                 [&](const SkipOrdered& e) { p.operators.on(e, work); },
                 [&](const ApprovalReceived& e) { p.controlling.on(e, work); },
                 [&](const DecisionReceived& e) { p.controlling.on(e, work); },
                 [&](const InjectionOrdered& e) { p.injections.on(e, work); },
                 [&](const HistoryKept& e) { p.history.kept(e.told); },
                 [&](const OperatorAsked& e) { p.operators.on(e, work); },
                 [&](const lifecycle::EvictionRequested& e) { p.operators.ask(e, work); },
                 [&](const lifecycle::ServerCountRequested& e) { p.operators.ask(e, work); },
                 [&](const auto& of_lifecycle) { work.then(of_lifecycle); },
             },
             input);
}

void JobMachine::take(Item& item, Work& work) {
  Parts& p = *parts_;
  std::visit(Overloaded{
                 [&](lifecycle::Input& e) {
                   lifecycle::Effects effects;
                   p.lifecycle.step(e, work.now, effects);
                   add_effects(std::move(effects), agenda_);
                 },
                 [&](membership::Input& e) {
                   membership::Effects effects;
                   p.membership.step(e, work.now, effects);
                   add_effects(std::move(effects), agenda_);
                   work.then(GroupStepped{});
                 },
                 [&](servers::Input& e) {
                   servers::Effects effects;
                   p.servers.step(e, work.now, effects);
                   add_effects(std::move(effects), agenda_);
                   work.then(GroupStepped{});
                 },
                 [&](control::Input& e) {
                   control::Effects effects;
                   p.controller.step(e, work.now, effects);
                   add_effects(std::move(effects), agenda_);
                 },
                 [&](lifecycle::Effect& e) { p.life_orders.carry_out(e, work); },
                 [&](membership::Effect& e) {
                   p.is_hybrid() ? p.hybrid.carry_out(e, work) : p.ring.carry_out(e, work);
                 },
                 [&](servers::Effect& e) {
                   p.is_hybrid() ? p.hybrid.carry_out(e, work) : p.servers_group.carry_out(e, work);
                 },
                 [&](control::Effect& e) { p.controlling.carry_out(e, work); },
                 [&](shard_server::ledger::Effect& e) { p.records.carry_out(e, work); },
                 [&](FollowUp& e) { take(e, work); },
             },
             item);
}

void JobMachine::take(FollowUp& item, Work& work) {
  Parts& p = *parts_;
  std::visit(Overloaded{
                 [&](const PhaseCompleted& e) { p.phases.on(e, work); },
                 [&](const ProgressCounted& e) { p.messages.on(e, work); },
                 [&](const GroupJoinHeard& e) { p.messages.on(e, work); },
                 [&](const LooseJoinHeard& e) { p.messages.on(e, work); },
                 [&](const HostListed& e) { p.hosts.on(e, work); },
                 [&](const RecoveryHeard& e) { go_on(e, work); },
                 [&](const RecoveryPlanned& e) { go_on(e, work); },
                 [&](const VitalsDue& e) { p.watching.on(e, work); },
                 [&](const DeadlinesDue& e) { p.watching.on(e, work); },
                 [&](const VerdictsDue& e) { p.controlling.on(e, work); },
                 [&](const PlanKept& e) { p.controlling.on(e, work); },
                 [&](const GroupStepped&) { p.group.stepped(work); },
                 [&](const SettlePlanned& e) { p.ring.on(e, work); },
                 [&](const ServerWorkersPlanned& e) { p.servers_group.on(e, work); },
                 [&](const ServerWorkerPlanned& e) { p.servers_group.on(e, work); },
             },
             item);
}

// --------------------------------------------------------- incarnations after the first

void JobMachine::begin(const IncarnationRecovered& /*e*/, Work& work) {
  const std::vector<WorkerProcess>& workers = parts_->lifecycle.workers();
  for (const WorkerProcess& w : workers) {
    if (w.state == WorkerProcess::kJoined) parts_->vitals.watch(w.member(), work.now);
    if (!w.running()) continue;
    const double ran_s = parts_->lifecycle.seconds() - w.started_at_s;
    parts_->times.runs_since(w.member(), work.now - from_seconds(ran_s));
  }
  const bool speaks = parts_->config.spec.protocol == Protocol::kAntdt;
  if (speaks && std::ranges::any_of(workers, &WorkerProcess::running)) parts_->group.expect(work);
  work.then(lifecycle::DaemonFollowed{});
  work.then(RecoveryHeard{});
}

void JobMachine::go_on(const RecoveryHeard& /*e*/, Work& work) {
  parts_->group.recover(work);
  work.then(RecoveryPlanned{});
}

void JobMachine::go_on(const RecoveryPlanned& /*e*/, Work& work) {
  work.remember(parts_->history.resume(parts_->records.ledger(), parts_->membership.image()));
  const JobState state = parts_->lifecycle.state();
  const wire::PhaseStart open = parts_->lifecycle.phase();
  if (open.what == wire::PhaseKind::kTrain) parts_->series.resume_phase(open.phase, work.now);
  work.note("recovered", fmt::format("incarnation {} goes on: {}, phase {}",
                                     parts_->config.incarnation, state, open.phase));
  parts_->group.finish_recovery(work);
}

// An operator who resumes the run wants the suspect records tried again.
void JobMachine::begin(const ResumeOrdered& /*e*/, Work& work) {
  parts_->suspicions.clear();
  work.then(lifecycle::RunResumed{});
}

// ------------------------------------------------------------------------- what is durable

std::optional<std::string> JobMachine::image_if_changed() {
  if (!std::exchange(image_changed_, false)) return {};
  return wire::encode(parts_->image());
}

std::vector<shard_server::JournalEntry> JobMachine::snapshot() const {
  return {{std::string(shard_server::kLedgerKind), ledger().image()},
          {std::string(shard_server::kAccountsKind), accounts().image()},
          parts_->past.section(),
          {std::string(kImageRecord), wire::encode(parts_->image())}};
}

// ------------------------------------------------------------------------------ queries

const ClusterView* JobMachine::view_to_decide(MonoTime now) const {
  const bool can = parts_->trains() && parts_->controller.settled(now);
  return can ? &parts_->controller.view() : nullptr;
}

JobReport JobMachine::report() const { return report_of(*parts_); }

}  // namespace antdt::ctl::job
