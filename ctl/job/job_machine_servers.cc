// Parameter servers and the workers that push to them: what their group means to
// the ledger, the lifecycle and the controller.
#include <algorithm>

#include "core/overloaded.h"
#include "ctl/job/job_machine.h"

namespace antdt::ctl {

Generation JobMachine::generation() const {
  return uses_servers() ? servers_.generation() : membership_.generation();
}

bool JobMachine::group_is_whole() const {
  return uses_servers() ? servers_.serving() : membership_.settled();
}

void JobMachine::expect_group(const std::vector<WorkerProcess>& running) {
  if (uses_servers()) {
    servers::Expect expected;
    for (const WorkerProcess& w : running) {
      (w.is_server() ? expected.servers : expected.workers).push_back(w.member());
    }
    return feed(servers::Event(expected));
  }
  Expect expected;
  for (const WorkerProcess& w : running) {
    expected.members.push_back({w.member(), host_name(w.place.host), w.place.host_order});
  }
  feed(MembershipEvent(expected));
}

// --------------------------------------------------------------- what they say

void JobMachine::heard(Member m, Generation g, std::uint64_t, const wire::PsServing& e) {
  feed(servers::Event(servers::Serving{m, g, e}));
}

void JobMachine::heard(Member m, Generation g, std::uint64_t, const wire::PsSaved& e) {
  feed(servers::Event(servers::Saved{m, g, e}));
}

void JobMachine::heard(Member m, Generation, std::uint64_t, const wire::PsStats& e) {
  if (m.worker.role == 's') served_[m.worker] = e;
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

void JobMachine::feed(const servers::Event& event) {
  run(servers_.step(event, now_));
  if (servers_.serving()) deal_again();
}

void JobMachine::run(const servers::Effects& effects) {
  for (const servers::Effect& effect : effects) {
    std::visit(Overloaded{
                   [&](const servers::Changed&) { image_dirty_ = true; },
                   [&](const servers::SendServe& e) { send(e.to, e.generation, e.serve); },
                   [&](const servers::SendCut& e) { send(e.to, e.generation, e.cut); },
                   [&](const servers::Formed& e) { on_formed(e); },
                   [&](const servers::Admit& e) { admit(e.worker); },
                   [&](const servers::Left& e) { on_left(e.places); },
                   [&](const servers::Over& e) { on_over(e); },
                   [&](const servers::OverAgain& e) {
                     for (const Member worker : e.workers) {
                       send(worker, e.generation, wire::Abort{"its servers are given up"});
                     }
                   },
                   [&](const servers::Silent& e) {
                     feed(job::Event(job::Hung{e.member, e.what}));
                   },
                   [&](const servers::StateLost&) {
                     if (!lifecycle_.outcome()) out_->emplace_back(out::FindCheckpoint{});
                   },
                   [&](const servers::CutDone& e) { on_cut(e); },
               },
               effect);
  }
}

void JobMachine::on_formed(const servers::Formed& formed) {
  feed(shard_server::Event(shard_server::event::Settled{formed.generation, {}, formed.workers}));
  dealt_.clear();
  deal_again();
  for (const Member worker : formed.workers) tell_of_servers(worker);
  expect_steps();
  feed(job::Event(job::GenerationSettled{formed.generation, formed.workers}));
}

void JobMachine::tell_of_servers(Member worker) {
  send(worker, generation(),
       wire::PsRoster{servers_.endpoints(), config_.spec.sync, config_.spec.staleness});
  if (!controller_.plan().entries.empty()) send(worker, generation(), controller_.plan());
}

// One that the ledger knows keeps what it holds: it has asked again, or this
// incarnation does not know that it was told.
void JobMachine::admit(Member worker) {
  const auto holder = ledger_.holders().find(worker.worker);
  const bool known = holder != ledger_.holders().end() && holder->second.active &&
                     holder->second.attempt == worker.attempt &&
                     holder->second.generation == generation();
  if (!known) {
    feed(shard_server::Event(shard_server::event::MemberAdmitted{worker, generation()}));
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
    feed(shard_server::Event(shard_server::event::Progress{
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
  feed(shard_server::Event(shard_server::event::MemberLeft{member}));
}

void JobMachine::on_over(const servers::Over& over) {
  if (lifecycle_.outcome()) return feed(job::Event(job::GenerationOver{}));  // they leave
  note("generation-broken",
       fmt::format("the servers of generation {} are given up: {}", over.generation, over.reason));
  suspected_.clear();  // no home answers for them any more
  for (const Member worker : over.workers) send(worker, over.generation, wire::Abort{over.reason});
  expect_steps();
  feed(job::Event(job::GenerationOver{}));
}

void JobMachine::deal_again() {
  const std::vector<Member> workers = servers_.present();
  if (workers.empty() || workers == dealt_) return;
  dealt_ = workers;
  std::vector<Monitor::MemberInfo> group;
  for (const Member m : workers) {
    const WorkerProcess* w = lifecycle_.find(m.worker);
    group.push_back({m, w == nullptr ? "" : host_name(w->place.host)});
  }
  feed(Event(GroupFormed{group}));
}

// ------------------------------------------------------------------- checkpoints

// Workers that have not pushed in this phase are at its beginning.
void JobMachine::on_cut(const servers::CutDone& cut) {
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
  const bool all_is_trained = lifecycle_.phase().what == "finish";
  for (const auto& [worker, holder] : ledger_.holders()) {
    if (!holder.active || all_is_trained) continue;
    const auto at = std::ranges::find_if(cut.places, [&](const wire::PsPlaces& p) {
      return p.worker == worker && p.attempt == holder.attempt && p.phase == written.phase;
    });
    const bool pushed = at != cut.places.end() && !at->applied.empty();
    written.places.push_back({worker, pushed ? at->applied.back().to : 0});
  }
  const WorkerProcess* first = lifecycle_.find(WorkerId{'s', 0});
  if (first != nullptr) store_checkpoint(written, first->member());
}

std::vector<ServerReport> JobMachine::server_reports() const {
  std::vector<ServerReport> reports;
  for (const WorkerProcess& w : lifecycle_.workers()) {
    if (!w.is_server()) continue;
    ServerReport r{w.place.worker, host_name(w.place.host),          w.pid,
                   w.attempt,      std::string(state_name(w.state)), {}};
    const auto said = served_.find(w.place.worker);
    if (said != served_.end()) r.said = said->second;
    reports.push_back(std::move(r));
  }
  return reports;
}

}  // namespace antdt::ctl
