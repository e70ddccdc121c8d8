#include "ctl/job/job_machine.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/check.h"
#include "core/wire/packet.h"
#include "core/wire/time_sums.h"

namespace antdt::ctl {
namespace {

// Room of a host where the role asks for no resources.
constexpr std::uint32_t kAnyNumber = 1'000'000;
// How long an agent that came back may take to report an exit that it saw.
constexpr Duration kVanishedAfter = std::chrono::seconds(5);
constexpr Duration kSayAgain = std::chrono::seconds(2);
constexpr const char* kDone = "the job is done";

// Whether a lost server takes nothing back from the others. With a barrier they all have the
// same steps, and go back together.
bool others_keep_rows(const JobSpec& spec) {
  return spec.delivery != Delivery::kExactlyOnce && spec.sync != SyncStrategy::kPsBsp;
}

// A promise is made once: what the journal counts goes by that one.
JobMachineConfig promised(JobMachineConfig config, const shard_server::Accounts& accounts,
                          bool known) {
  if (known) config.spec.delivery = accounts.delivery();
  return config;
}

}  // namespace

Result<JobMachine> JobMachine::open(JobMachineConfig config, std::unique_ptr<Solution> solution,
                                    const shard_server::JournalContent& journal) {
  shard_server::Ledger ledger(config.ledger);
  shard_server::Accounts accounts;
  std::string image_bytes;
  Past past;
  for (const shard_server::JournalEntry& entry : journal.snapshot) {
    ANTDT_TRY(const bool of_past, past.replay(entry));
    if (of_past) continue;
    if (entry.kind == shard_server::kLedgerKind) {
      ANTDT_TRY(ledger, shard_server::Ledger::restore(config.ledger, entry.bytes));
    } else if (entry.kind == shard_server::kAccountsKind) {
      ANTDT_TRY(accounts, shard_server::Accounts::restore(entry.bytes));
    } else if (entry.kind == kImageRecord) {
      image_bytes = entry.bytes;
    }
  }
  for (const shard_server::JournalEntry& entry : journal.records) {
    ANTDT_TRY(const bool of_past, past.replay(entry));
    if (of_past) continue;
    if (entry.kind == shard_server::kLedgerKind) {
      ANTDT_RETURN_IF_ERROR(ledger.replay(entry.bytes));
      ANTDT_RETURN_IF_ERROR(accounts.apply(entry.bytes));
    } else if (entry.kind == kImageRecord) {
      image_bytes = entry.bytes;
    }
  }
  JobImage image;
  if (!image_bytes.empty()) {
    ANTDT_TRY(image, wire::decode<JobImage>(image_bytes));
    past.take_from(image);
    config.control.last_version = image.plan.version;
    config.control.rate = image.plan.rate;
  }
  return JobMachine(std::move(config), std::move(solution), std::move(ledger), std::move(accounts),
                    std::move(past), std::move(image), !image_bytes.empty());
}

JobMachine::JobMachine(JobMachineConfig config, std::unique_ptr<Solution> solution,
                       shard_server::Ledger ledger, shard_server::Accounts accounts, Past past,
                       JobImage image, bool known)
    : config_(promised(std::move(config), accounts, known)),
      known_(known),
      ledger_(std::move(ledger)),
      accounts_(std::move(accounts)),
      lifecycle_(config_.spec),
      membership_(config_.secret, config_.hang_after),
      servers_({config_.spec.servers, config_.spec.sync, config_.spec.backups, config_.hang_after,
                config_.spec.server_replicas, others_keep_rows(config_.spec)}),
      controller_(config_.control, std::move(solution)),
      vitals_(config_.hang_after),
      past_(std::move(past)) {
  if (!known_) return;
  membership_.restore(image.membership);
  servers_.restore(image.servers, image.membership.generation);
  cut_phase_ = image.cut_phase;
  injected_ = image.injected;
  devices_.restore(image.devices);
  std::vector<Member> group;
  if (membership_.settled()) {
    for (const ExpectedMember& m : membership_.members()) group.push_back(m.member);
  }
  if (servers_.serving()) group = servers_.workers().present();
  group_settled_ = membership_.settled() && !group.empty();
  // Servers had written it, and what became of it then is known to nobody: they write another one.
  if (uses_servers() && image.servers.cut == 0) image.lifecycle.checkpoint_pending = false;
  lifecycle_.restore(std::move(image.lifecycle), std::move(group));
  std::vector<shard_server::SuspiciousDeath> deaths;
  for (const ImageDeath& d : image.deaths) {
    deaths.push_back({d.epoch, {d.worker, d.attempt}, {}});
    for (std::size_t i = 0; i + 1 < d.bounds.size(); i += 2) {
      deaths.back().hand.push_back({d.bounds[i], d.bounds[i + 1]});
    }
  }
  suspects_.restore(std::move(deaths));
  const auto put = [this](const ImageEpoch& e) {
    EpochReport report{e.train_loss, e.samples, e.seconds, std::nullopt};
    if (e.evaluated) report.eval = {e.auc, e.log_loss, e.accuracy, e.eval_records};
    epochs_.push_back(report);
  };
  std::ranges::for_each(past_.epochs(), put);
  std::ranges::for_each(image.epochs, put);
}

void JobMachine::step(const JobInput& input, MonoTime now, JobOutputs& outputs) {
  now_ = now;
  out_ = &outputs;
  if (!ended_) {
    std::visit([this](const auto& e) { on(e); }, input);
    persist_past();
  }
  out_ = nullptr;
}

// ---------------------------------------------------------------------- inputs

void JobMachine::on(const in::Declared&) {
  image_dirty_ = true;
  feed(shard_server::ledger::Input(shard_server::ledger::JobDeclared{
      config_.spec.epochs, config_.spec.train_records, config_.spec.protocol == Protocol::kAntdt}));
  if (config_.spec.delivery != Delivery::kExactlyOnce) {
    feed(shard_server::ledger::Input(shard_server::ledger::DeliveryChosen{config_.spec.delivery}));
  }
}

void JobMachine::on(const in::Recovered&) {
  std::vector<WorkerProcess> running;
  for (const WorkerProcess& w : lifecycle_.workers()) {
    if (w.state == WorkerProcess::kJoined) vitals_.watch(w.member(), now_);
    if (w.running() && config_.spec.protocol == Protocol::kAntdt) running.push_back(w);
  }
  if (!running.empty()) expect_group(running);
  if (membership_.settled()) {
    std::vector<Monitor::MemberInfo> group;
    for (const ExpectedMember& m : membership_.members()) {
      group.push_back(info_of(m.member, m.host));
      group.back().rank = static_cast<std::uint32_t>(group.size() - 1);
    }
    feed(control::Input(control::GroupFormed{group}));
    expect_steps();
  }
  remember(history_.resume(ledger_, membership_.image()));
  const wire::PhaseStart phase = lifecycle_.phase();
  if (lifecycle_.state() == JobState::kTraining) progress_.begin_phase(phase.phase, now_);
  note("recovered", fmt::format("incarnation {} goes on: {}, phase {}", config_.incarnation,
                                to_string(lifecycle_.state()), phase.phase));
  // Members that wait for something we had decided but not said hear it now.
  for (const WorkerProcess& w : lifecycle_.workers()) {
    if (w.leaving() && w.running()) {
      send(w.member(), generation(), wire::Leave{"asked before", kExitResumable});
    }
  }
  if (uses_servers()) {
    if (servers_.serving()) deal_again();
    expect_steps();
    // No generation settles that would tell it; its workers go on saying that they are done.
    const bool drained = ledger_.complete() && ledger_.phase().number == phase.phase;
    if (servers_.serving() && drained) feed(job::Event(job::PhaseDrained{phase.phase}));
    return;
  }
  if (phase.phase > 0 && (membership_.settled() || !lifecycle_.collective())) {
    send_to_members(with_committed(phase));
  }
}

// Whoever resumes it wants it tried again.
void JobMachine::on(const in::Resumed&) {
  suspects_.clear();
  dead_suspects_.clear();
  feed(job::Event(job::Resumed{}));
}

void JobMachine::on(const in::HostWelcome& e) {
  note("host", fmt::format("{} is there{}", e.host.name,
                           e.host.room < kAnyNumber
                               ? fmt::format(", with room for {} workers of this job", e.host.room)
                               : ""));
  feed(job::Event(job::HostUp{e.host}));
  const auto runs = [&](Member member) {
    return std::ranges::any_of(e.running, [&](const wire::RunningProcess& p) {
      return p.worker == member.worker && p.attempt == member.attempt;
    });
  };
  // What was replaced while its host was away must end, and change nothing.
  for (const wire::RunningProcess& p : e.running) {
    const Member member{p.worker, p.attempt};
    const WorkerProcess* w = lifecycle_.find(p.worker);
    const bool current =
        w != nullptr && lifecycle_.is_current(member) && w->place.host == e.host.host;
    if (!current) out_->emplace_back(job::StopWorker{member, e.host.host, Duration::zero()});
  }
  for (const WorkerProcess& w : lifecycle_.workers()) {
    const bool started = w.state == WorkerProcess::kStarted || w.state == WorkerProcess::kJoined;
    if (w.place.host == e.host.host && started && !runs(w.member())) vanished_[w.member()] = now_;
  }
}

void JobMachine::on(const in::HostSilent& e) {
  std::vector<Member> there;
  for (const WorkerProcess& w : lifecycle_.workers()) {
    if (w.place.host == e.host) there.push_back(w.member());
  }
  vitals_.excuse(there, now_);
}

void JobMachine::on(const in::Pause& e) {
  paused_ = e.on;
  expect_steps();
}

// Nobody gets records while the journal has no room. And in the end one member
// writes the model while the others wait, however long that takes; so do all for the
// last checkpoint of a group of servers.
void JobMachine::expect_steps() {
  const bool none = paused_ || !group_is_whole() || servers_.closing() ||
                    lifecycle_.phase().what == wire::PhaseKind::kFinish;
  vitals_.expect_steps(none ? std::vector<Member>{} : members(), now_);
}

void JobMachine::on(const in::Tick&) {
  feed(job::Event(job::Tick{}));
  uses_servers() ? feed(servers::Input(servers::TimePassed{}))
                 : feed(MembershipEvent(MembershipTick{}));
  check_vitals();
  look_at_begun();
  remember_moment(false);
  say_finish_again();
  for (auto at = vanished_.begin(); at != vanished_.end();) {
    if (now_ - at->second < kVanishedAfter) {
      ++at;
      continue;
    }
    const Member member = at->first;
    at = vanished_.erase(at);
    feed(job::Event(job::Vanished{member}));
  }
}

// Once may be lost, and then nobody writes the model: members that wait for their
// next phase ask for nothing.
void JobMachine::say_finish_again() {
  const bool waits = lifecycle_.state() == JobState::kFinishing && group_is_whole();
  if (!waits || now_ - finish_said_ < kSayAgain) return;
  finish_said_ = now_;
  if (uses_servers() && lifecycle_.model_kept()) return send_to_members(wire::Leave{kDone, 0});
  send_to_members(with_committed(lifecycle_.phase()));
}

void JobMachine::check_vitals() {
  for (const Vitals::Finding& finding : vitals_.check(now_)) {
    if (const auto* hung = std::get_if<HungMember>(&finding)) {
      feed(job::Event(job::Hung{hung->member, hung->why}));
    } else if (uses_servers()) {  // who decides the steps does not
      on_stuck(std::get<StuckCollective>(finding).why);
    } else {
      feed(MembershipEvent(Stuck{std::get<StuckCollective>(finding).why}));
    }
  }
}

void JobMachine::on(const in::ControlTick&) {
  if (!trains()) return;
  feed(control::Input(control_tick()));
  for (std::string& news : verdicts_.look(controller_.view(), now_))
    note("verdict", std::move(news));
}

bool JobMachine::trains() const {
  return !ended_ && lifecycle_.state() == JobState::kTraining && group_is_whole();
}

void JobMachine::on(const in::CheckpointStored& e) {
  if (e.error.empty()) note("checkpoint", fmt::format("checkpoint {} is stored", e.name));
  checkpoint_is(e.number, e.error);
}

Status JobMachine::check(const job::ResizeAsked& e) const {
  ANTDT_RETURN_IF_ERROR(lifecycle_.check(e));
  std::vector<WorkerId> workers(e.count);
  for (std::uint32_t i = 0; i < e.count; ++i) workers[i] = {'w', i};
  const auto plan = equal_plan(PlanVersion{1}, workers, config_.control.rules);
  if (plan) return {};
  return fail(ErrorKind::kRefused, "{} workers cannot share the global batch: {}", e.count,
              plan.error().message);
}

Status JobMachine::check_skip(const wire::SkipRecords& order) const {
  if (order.reason.empty()) return fail(ErrorKind::kUsage, "records are skipped for a --reason");
  if (order.from >= order.to || order.to > ledger_.records()) {
    return fail(ErrorKind::kUsage,
                "positions {}:{} are not in the stream of this phase, which has {} records",
                order.from, order.to, ledger_.records());
  }
  return {};
}

void JobMachine::on(const in::Skip& e) {
  if (!check_skip(e.order)) return;
  feed(shard_server::ledger::Input(shard_server::ledger::SkipDeclared{
      ledger_.phase().number, {e.order.from, e.order.to}, e.order.reason}));
  note("skip", fmt::format("{} lets the job go on without positions {}:{}: {}", e.order.who,
                           e.order.from, e.order.to, e.order.reason));
  // The members count the phase's records: they hear the new number.
  if (!uses_servers()) feed(MembershipEvent(Stuck{"records of this phase are skipped"}));
}

// Among the actions, so that the journal and the summary have who asked.
void JobMachine::on(const in::OperatorSaid& e) {
  past_.add(ActionReport{0, lifecycle_.seconds(), e.kind, "", e.text, "asked"});
  note("operator", fmt::format("{}: {}", e.kind, e.text));
}

// ---------------------------------------------------------------------- report

std::string JobMachine::host_name(const std::string& endpoint) const {
  const HostState* host = lifecycle_.hosts().find(endpoint);
  return host == nullptr || host->name.empty() ? endpoint : host->name;
}

std::vector<WorkerReport> JobMachine::worker_reports() const {
  std::vector<WorkerReport> reports;
  std::map<Member, std::uint32_t> ranks;
  for (const Member m : members()) ranks.emplace(m, static_cast<std::uint32_t>(ranks.size()));
  std::map<WorkerId, const wire::PlanEntry*> entries;
  for (const wire::PlanEntry& e : controller_.plan().entries) entries.emplace(e.worker, &e);
  std::map<Member, const WorkerView*> views;
  for (const WorkerView& v : controller_.view().workers) views.emplace(v.member, &v);
  for (const WorkerProcess& w : lifecycle_.workers()) {
    if (w.is_server()) continue;
    WorkerReport r;
    if (const auto found = measured_.find(w.place.worker); found != measured_.end()) {
      r = found->second;
    }
    if (const auto found = earlier_.find(w.place.worker); found != earlier_.end()) {
      r.samples += found->second.samples;
      r.wall_seconds += found->second.wall_seconds;
      r.time += found->second.time;
    }
    r.worker = w.place.worker;
    r.host = host_name(w.place.host);
    r.device = devices_.of(w.member(), r.host);
    r.pid = w.pid;
    r.attempt = w.attempt;
    r.state = w.leaving() && w.running() ? "leaving" : state_name(w.state);
    r.io = vitals_.io().of(w.member());
    if (w.state == WorkerProcess::kWaiting) {
      r.tried_again_in_s = std::max(0.0, w.waits_until_s - lifecycle_.seconds());
    }
    if (const auto rank = ranks.find(w.member()); rank != ranks.end()) r.rank = rank->second;
    const auto entry = entries.find(r.worker);
    if (entry != entries.end() && r.rank) r.batch = share_of(*entry->second);
    const auto view = views.find(w.member());
    if (view != views.end() && view->second->measured) {
      r.samples_per_second = view->second->speed_transient;
      r.verdict = view->second->verdict;
      r.judged = true;
    }
    reports.push_back(std::move(r));
  }
  return reports;
}

std::uint64_t JobMachine::samples_done() const {
  const wire::PhaseStart phase = lifecycle_.phase();
  if (phase.phase == 0) return 0;
  const std::uint64_t before = config_.spec.train_records * phase.epoch.value;
  if (phase.what == wire::PhaseKind::kTrain) {
    return before + std::max(progress_.samples_in_phase(), ledger_.committed());
  }
  return before + (phase.what == wire::PhaseKind::kEval ? config_.spec.train_records : 0);
}

JobReport JobMachine::report() const {
  const wire::PhaseStart phase = lifecycle_.phase();
  const JobSpec& spec = config_.spec;
  JobReport r;
  r.job = config_.job;
  r.state = to_string(lifecycle_.state());
  r.generation = generation();
  r.lineage = membership_.lineage();
  r.incarnation = config_.incarnation;
  r.epochs = spec.epochs;
  r.epoch = std::min(phase.epoch.value, spec.epochs > 0 ? spec.epochs - 1 : 0);
  r.step = progress_.step();
  r.samples_total = samples_total();
  r.samples_done = samples_done();
  const bool training = phase.what == wire::PhaseKind::kTrain;
  r.wall_seconds = lifecycle_.seconds();
  r.training_seconds = progress_.training_seconds();
  std::uint64_t trained = 0;
  double trained_seconds = 0;
  for (const EpochReport& e : epochs_) {
    trained += e.samples;
    trained_seconds += e.seconds;
  }
  r.samples_per_second = training && !ended_   ? progress_.samples_per_second()
                         : trained_seconds > 0 ? static_cast<double>(trained) / trained_seconds
                                               : 0;
  if (training) r.train_loss = progress_.recent_loss();
  r.message = message_;
  r.outcome = lifecycle_.outcome();
  if (const auto missing = membership_.missing(); !missing.empty()) {
    for (const Member m : missing) r.waiting_for += fmt::format("{} ", m.worker);
    r.waiting_for += membership_.waiting_for();
  }
  if (uses_servers() && !r.outcome) report_servers(r);
  r.workers = worker_reports();
  r.servers = server_reports();
  r.actions.assign(past_.actions().begin(), past_.actions().end());
  r.epoch_reports = epochs_;
  r.failures.assign(past_.failures().begin(), past_.failures().end());
  std::ranges::copy(lifecycle_.failures(), std::back_inserter(r.failures));
  std::ranges::stable_sort(r.failures, {}, &FailureRecord::time_s);
  for (const HostState& h : lifecycle_.hosts().all()) {
    r.hosts.push_back({h.name.empty() ? h.host : h.name, h.room, h.up, h.closed,
                       lifecycle_.hosts().on_probation(h, r.wall_seconds),
                       lifecycle_.hosts().penalty(h, r.wall_seconds)});
  }
  for (std::uint8_t c = 0; c < static_cast<std::uint8_t>(FailureClass::kNone); ++c) {
    const auto cls = static_cast<FailureClass>(c);
    const auto limit = spec.budgets.find(std::string(to_string(cls)));
    if (limit == spec.budgets.end()) continue;
    r.budgets.push_back({limit->first, limit->second, lifecycle_.budget_left(cls)});
  }
  r.delivery = accounts_.delivery();
  for (const shard_server::EpochAccount& e : accounts_.epochs()) {
    r.totals.once += e.once;
    r.totals.repeated += e.repeated;
    r.totals.lost += e.lost;
    r.totals.skipped += e.skipped;
    r.totals.unaccounted += e.unaccounted;
  }
  return r;
}

}  // namespace antdt::ctl
