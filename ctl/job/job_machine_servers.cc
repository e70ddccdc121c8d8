// Parameter servers and the workers that push to them: what their group means to
// the ledger, the lifecycle and the controller.
#include <algorithm>
#include <utility>

#include "core/overloaded.h"
#include "ctl/job/job_machine.h"

namespace antdt::ctl {
namespace {

// Checkpoints that fail one after another because of the same server before it is moved.
constexpr std::uint32_t kUnwrittenMost = 3;

// What a server holds and serves, without what it decided.
wire::PsStats without_decisions(wire::PsStats stats) {
  stats.pushes_applied = stats.pushes_late = stats.pushes_repeated = 0;
  stats.staleness_pushes = stats.staleness_sum = stats.staleness_max = 0;
  return stats;
}

}  // namespace

Generation JobMachine::generation() const {
  return uses_servers() ? servers_.generation() : membership_.generation();
}

bool JobMachine::group_is_whole() const {
  return uses_servers() ? servers_.serving() : membership_.settled();
}

void JobMachine::expect_group(const std::vector<WorkerProcess>& running) {
  if (uses_servers()) {
    servers::ProcessesExpected expected;
    for (const WorkerProcess& w : running) {
      if (w.is_server() && w.stays_away()) continue;  // another one takes over
      (w.apart()       ? expected.added
       : w.is_server() ? expected.servers
                       : expected.workers)
          .push_back(w.member());
    }
    return feed(servers::Input(expected));
  }
  Expect expected;
  for (const WorkerProcess& w : running) {
    expected.members.push_back({w.member(), host_name(w.place.host), w.place.host_order});
  }
  feed(MembershipEvent(expected));
}

// --------------------------------------------------------------- what they say

void JobMachine::heard(Member m, Generation g, std::uint64_t, const wire::PsServing& e) {
  feed(servers::Input(servers::ServeAnswered{m, g, e}));
}

void JobMachine::heard(Member m, Generation g, std::uint64_t, const wire::PsSaved& e) {
  feed(servers::Input(servers::SlicesSaved{m, g, e}));
}

void JobMachine::heard(Member m, Generation, std::uint64_t, const wire::PsStats& e) {
  if (m.worker.role != 's') return;
  wire::PsStats& said = served_[m.worker] = e;
  feed(control::Input(control::ServerMetricsReported{m, e.requests, e.busy_us}));
  // Its backup has decided the same.
  const std::string role = servers_.placement().role_of(m);
  if (role == "backup" || role == "joining") said = without_decisions(e);
}

// Each worker says what it did itself; those that have left said it before.
void JobMachine::add_up(Member m, const wire::Progress& e) {
  if (e.phase != lifecycle_.phase().phase) return;
  pushed_[m] = e;
  wire::Progress all = e;
  all.samples = 0;
  all.loss_sum = all.weight_sum = 0;
  for (const auto& [member, progress] : pushed_) {
    all.step = std::max(all.step, progress.step);
    all.samples += progress.samples;
    all.loss_sum += progress.loss_sum;
    all.weight_sum += progress.weight_sum;
  }
  progress_.update(all, now_);
}

// ------------------------------------------------------------ what becomes of it

void JobMachine::feed(const servers::Input& event) {
  const bool closing = servers_.closing();
  servers::Effects effects;
  servers_.step(event, now_, effects);
  run(effects);
  if (closing != servers_.closing()) expect_steps();
  if (servers_.serving()) deal_again();
}

void JobMachine::run(const servers::Effects& effects) {
  for (const servers::Effect& effect : effects) {
    std::visit(Overloaded{
                   [&](const servers::PersistGroup&) { image_dirty_ = true; },
                   [&](const servers::SendServe& e) {
                     send_to_reader(e.to, e.generation, e.serve, e.reads ? e.serve.restore : "");
                   },
                   [&](const servers::SendCut& e) { send(e.to, e.generation, e.cut); },
                   [&](const servers::OpenGroup& e) { on_formed(e); },
                   [&](const servers::AdmitWorker& e) { admit(e.worker); },
                   [&](const servers::SettleLeaver& e) { on_left(e.places); },
                   [&](const servers::DissolveGroup& e) { on_over(e); },
                   [&](const servers::RepeatDissolve& e) {
                     for (const Member worker : e.workers) {
                       send(worker, e.generation, wire::Abort{"its servers are given up"});
                     }
                   },
                   [&](const servers::EndSilentMember& e) {
                     feed(job::Event(job::Hung{e.member, e.what}));
                   },
                   [&](const servers::ReportSwitch& e) { on_switched(e); },
                   [&](const servers::ReportBackup& e) { on_backed(e); },
                   [&](const servers::SendRosters& e) {
                     for (const Member worker : e.workers) send(worker, generation(), roster());
                   },
                   [&](const servers::ReportTrouble& e) { on_trouble(e); },
                   [&](const servers::ChooseRestore&) {
                     if (!lifecycle_.outcome()) out_->emplace_back(out::FindCheckpoint{});
                   },
                   [&](const servers::ConcludeCut& e) { on_cut(e); },
               },
               effect);
  }
}

void JobMachine::on_switched(const servers::ReportSwitch& switched) {
  const WorkerId lost = switched.lost.worker;
  const WorkerId alone = switched.alone.worker;
  if (switched.promoted) {  // until it says so itself
    const wire::PsStats decided = served_[lost];
    wire::PsStats& now = served_[alone];
    now.pushes_applied = decided.pushes_applied;
    now.pushes_late = decided.pushes_late;
    now.pushes_repeated = decided.pushes_repeated;
    now.staleness_pushes = decided.staleness_pushes;
    now.staleness_sum = decided.staleness_sum;
    now.staleness_max = decided.staleness_max;
  }
  served_[lost] = without_decisions(served_[lost]);
  if (lifecycle_.outcome()) return;  // they leave
  const bool moved = switched.promoted && config_.spec.server_replicas < 2;
  note("server-switched",
       moved ? fmt::format("{} is server {} from now on, {} has left it", alone, switched.server,
                           lost)
       : switched.promoted
           ? fmt::format("{} is lost; its backup {} is server {} from now on, without one", lost,
                         alone, switched.server)
           : fmt::format("{} is lost, the backup of {}, which goes on without one", lost, alone));
}

void JobMachine::on_backed(const servers::ReportBackup& backed) {
  if (lifecycle_.outcome()) return;
  const bool moves = config_.spec.server_replicas < 2;
  note("server-backed",
       fmt::format("{} has all that {} has, and {}", backed.backup.worker, backed.primary.worker,
                   moves ? "takes over" : "is its backup from now on"));
  if (moves) feed(job::Event(job::TakenOver{backed.primary}));
}

// ------------------------------------------------------------ servers that are moved

std::optional<job::RestartAsked> JobMachine::server_to_move(const job::EvictAsked& e) const {
  const auto id = parse_worker_id(e.target);
  const WorkerProcess* const w = id ? lifecycle_.find(*id) : nullptr;
  if (w == nullptr || !w->is_server()) return std::nullopt;
  return job::RestartAsked{w->member(), e.reason, e.deadline};
}

Status JobMachine::check(const job::EvictAsked& e) const {
  const auto server = server_to_move(e);
  return server ? check(*server) : lifecycle_.check(e);
}

// Its rows have to be with another process, which stays.
Status JobMachine::check(const job::RestartAsked& e) const {
  ANTDT_RETURN_IF_ERROR(lifecycle_.check(e));
  if (e.member.worker.role != 's' || servers_.placement().role_of(e.member) == "joining") return {};
  if (config_.spec.server_replicas < 2) {
    if (servers_.serving()) return {};
    return fail(ErrorKind::kRefused,
                "the servers do not serve now, and only then can {} be moved: try again soon",
                e.member.worker);
  }
  const auto other = servers_.placement().other_of(e.member);
  const WorkerProcess* const w = other ? lifecycle_.find(*other) : nullptr;
  if (servers_.serving() && w != nullptr && w->running() && !w->leaving()) return {};
  return fail(ErrorKind::kRefused,
              "nobody else has all rows of {} now: try again when it has a backup",
              e.member.worker);
}

void JobMachine::on(const job::EvictAsked& e) {
  const auto server = server_to_move(e);
  if (!server) return feed(job::Event(e));
  if (check(*server)) feed(job::Event(*server));
}

// ------------------------------------------------------------ how many servers there are

Status JobMachine::check(const job::ServersAsked& e) const {
  ANTDT_RETURN_IF_ERROR(lifecycle_.check(e));
  if (servers_.serving() || lifecycle_.servers_wanted() > 0) return {};
  return fail(ErrorKind::kRefused,
              "the servers do not serve now, and only then can they become {}: try again soon",
              e.count);
}

void JobMachine::on(const job::ServersAsked& e) {
  if (check(e)) feed(job::Event(e));
}

// A member may not have heard of the phase.
void JobMachine::on_stuck(const std::string& why) {
  if (servers_.serving()) send_to_members(with_committed(lifecycle_.phase()));
  if (const WorkerProcess* first = first_server())
    feed(job::Event(job::Hung{first->member(), why}));
}

const WorkerProcess* JobMachine::first_server() const {
  const auto first = std::ranges::find_if(lifecycle_.workers(), [&](const WorkerProcess& w) {
    return w.is_server() && servers_.placement().is_first(w.member());
  });
  return first == lifecycle_.workers().end() ? nullptr : &*first;
}

void JobMachine::on_trouble(const servers::ReportTrouble& trouble) {
  const WorkerProcess* w = lifecycle_.find(trouble.worker.worker);
  const std::string text =
      fmt::format("{} on {}: {}", trouble.worker.worker,
                  w == nullptr ? "" : host_name(w->place.host), trouble.problem);
  note("cannot-begin", text);
  if (trouble.last) feed(job::Event(job::Failed{"host", 3, text}));
}

void JobMachine::on_formed(const servers::OpenGroup& formed) {
  feed(shard_server::ledger::Input(
      shard_server::ledger::GenerationSettled{formed.generation, {}, formed.workers}));
  note_startup(formed.workers);
  dealt_.clear();
  deal_again();
  for (const Member worker : formed.workers) tell_of_servers(worker);
  expect_steps();
  feed(job::Event(job::GenerationSettled{formed.generation, formed.workers}));
}

wire::PsRoster JobMachine::roster() const {
  wire::PsRoster roster = servers_.roster();
  roster.sync = config_.spec.sync;
  roster.staleness = config_.spec.staleness;
  return roster;
}

void JobMachine::tell_of_servers(Member worker) {
  send(worker, generation(), roster());
  if (!controller_.plan().entries.empty()) {
    send(worker, generation(), plan_of(worker.worker));
  }
}

// One that the ledger knows keeps what it holds: it has asked again, or this
// incarnation does not know that it was told.
void JobMachine::admit(Member worker) {
  const auto holder = ledger_.holders().find(worker.worker);
  const bool known = holder != ledger_.holders().end() && holder->second.active &&
                     holder->second.attempt == worker.attempt &&
                     holder->second.generation == generation();
  if (!known) {
    feed(shard_server::ledger::Input(shard_server::ledger::MemberAdmitted{worker, generation()}));
    note("joined", fmt::format("{} (attempt {}) pushes to the servers from now on", worker.worker,
                               worker.attempt));
  }
  deal_again();
  tell_of_servers(worker);
  if (lifecycle_.phase().phase > 0) send(worker, generation(), with_committed(lifecycle_.phase()));
  expect_steps();
}

// Its home has the last word: what the ledger has not heard of yet is committed.
void JobMachine::on_left(const wire::PsPlaces& places) {
  const Member member{places.worker, places.attempt};
  const auto holder = ledger_.holders().find(member.worker);
  const bool held = holder != ledger_.holders().end() && holder->second.active &&
                    holder->second.attempt == member.attempt;
  if (!held) return;
  // Gaps are batches of weight 0: nothing of them was to be applied.
  if (places.phase == ledger_.phase().number && !places.applied.empty()) {
    feed(shard_server::ledger::Input(shard_server::ledger::ProgressReported{
        member, holder->second.generation, places.phase, places.applied.back().to}));
  }
  const shard_server::Holder& left = holder->second;
  if (const auto found = suspected_.find(member); found != suspected_.end()) {
    suspect(member, left.place, found->second);
    suspected_.erase(found);
    if (stop_for_suspects()) return;
  }
  if (left.outstanding() > 0) {
    note("returned", fmt::format("{} (attempt {}) gave back {} records", member.worker,
                                 member.attempt, left.outstanding()));
  }
  feed(shard_server::ledger::Input(shard_server::ledger::MemberLeft{member}));
}

void JobMachine::on_over(const servers::DissolveGroup& over) {
  if (lifecycle_.outcome()) return feed(job::Event(job::GenerationOver{}));  // they leave
  note("generation-broken",
       fmt::format("the servers of generation {} are given up: {}", over.generation, over.reason));
  suspected_.clear();  // no home answers for them any more
  for (const Member worker : over.workers) send(worker, over.generation, wire::Abort{over.reason});
  expect_steps();
  feed(job::Event(job::GenerationOver{}));
}

void JobMachine::deal_again() {
  const std::vector<Member> workers = servers_.workers().present();
  if (workers.empty() || workers == dealt_) return;
  dealt_ = workers;
  std::vector<Monitor::MemberInfo> group;
  for (const Member m : workers) {
    const WorkerProcess* w = lifecycle_.find(m.worker);
    group.push_back(info_of(m, w == nullptr ? "" : host_name(w->place.host)));
  }
  feed(control::Input(control::GroupFormed{group}));
}

// ------------------------------------------------------------------- checkpoints

// The disk of its host may be full for good, and the rows are in its memory: another host's disk
// may have room for them.
void JobMachine::look_at_unwritten(const servers::ConcludeCut& cut) {
  if (!cut.unwritten || cut.unwritten != unwritten_.server) unwritten_ = {};
  if (!cut.unwritten || lifecycle_.outcome()) return;
  unwritten_.server = *cut.unwritten;
  if (++unwritten_.times < kUnwrittenMost) return;
  const job::RestartAsked move{
      unwritten_.server,
      fmt::format("{} checkpoints in a row failed because of it ({})", unwritten_.times, cut.error),
      config_.spec.stop_grace};
  if (const Status possible = check(move); !possible) {
    const std::string why = possible.error().message;
    if (std::exchange(unwritten_.said, why) == why) return;
    return note("cannot-move", fmt::format("{} should be moved, since {}; it cannot be: {}",
                                           unwritten_.server.worker, move.reason, why));
  }
  unwritten_ = {};
  feed(job::Event(move));
}

// Workers that have not pushed in this phase are at its beginning.
void JobMachine::on_cut(const servers::ConcludeCut& cut) {
  look_at_unwritten(cut);
  wire::CheckpointWritten written;
  written.number = cut.number;
  written.phase = ledger_.phase().number;
  written.step = Step{cut.version};
  written.directory = config_.ledger.run + "/" + cut.directory;
  written.files = cut.files;
  written.error = cut.error;
  if (written.error.empty() && cut_phase_ != written.phase) {
    written.error =
        fmt::format("phase {} was over before checkpoint {} was written", cut_phase_, cut.number);
  }
  const bool all_is_trained = lifecycle_.phase().what == wire::PhaseKind::kFinish;
  for (const auto& [worker, holder] : ledger_.holders()) {
    if (!holder.active || all_is_trained) continue;
    const auto at = std::ranges::find_if(cut.places, [&](const wire::PsPlaces& p) {
      return p.worker == worker && p.attempt == holder.attempt && p.phase == written.phase;
    });
    const bool pushed = at != cut.places.end() && !at->applied.empty();
    written.places.push_back({worker, pushed ? at->applied.back().to : 0});
  }
  if (const WorkerProcess* first = first_server())
    store_checkpoint(written, first->member(), cut.writers);
}

void JobMachine::report_servers(JobReport& report) const {
  report.waiting_for = servers_.waiting_for();
  report.servers_count = lifecycle_.servers();
  report.servers_wanted = lifecycle_.servers_wanted();
  if (!report.waiting_for.empty() || report.servers_wanted == 0) return;
  for (const WorkerProcess& w : lifecycle_.workers()) {
    const bool comes = w.apart() && !w.stays_away() && w.state != WorkerProcess::kJoined;
    if (comes) report.waiting_for += fmt::format("{} ", w.place.worker);
  }
  report.waiting_for +=
      report.waiting_for.empty() ? "the last checkpoint of the servers" : "to join";
}

std::vector<ServerReport> JobMachine::server_reports() const {
  std::vector<ServerReport> reports;
  for (const WorkerProcess& w : lifecycle_.workers()) {
    if (!w.is_server() || w.state == WorkerProcess::kRemoved) continue;
    ServerReport r{w.place.worker, host_name(w.place.host),          w.pid,
                   w.attempt,      std::string(state_name(w.state)), {}};
    const auto said = served_.find(w.place.worker);
    if (said != served_.end()) r.said = said->second;
    const auto& views = controller_.view().servers;
    const auto view = std::ranges::find(views, w.member(), &ServerView::member);
    if (view != views.end()) {
      r.judged = view->measured;
      r.verdict = view->verdict;
    }
    const std::string role = servers_.placement().role_of(w.member());
    r.io = vitals_.io().of(w.member());
    if (config_.spec.server_replicas > 1 || role != "alone") r.role = role;
    reports.push_back(std::move(r));
  }
  return reports;
}

}  // namespace antdt::ctl
