#include "sim/fleet/groups/push_group.h"

#include <algorithm>
#include <utility>

namespace antdt::fleet {
namespace {

// How long a worker without records waits before it looks again.
constexpr double kLookAgainS = 0.01;
constexpr Duration kPushProgressEvery = std::chrono::milliseconds(50);

std::vector<Member> members_of(const std::vector<wire::PsMember>& list) {
  std::vector<Member> members;
  for (const wire::PsMember& m : list) members.push_back({m.worker, m.attempt});
  return members;
}

}  // namespace

void PushGroup::hear(Worker& process, Generation generation, const ctl::job::WorkerMessage& body) {
  std::visit([&](const auto& order) { on(process, generation, order); }, body);
}

const char* PushGroup::activity(const Worker& worker) const {
  const auto found = pushers_.find(worker.member.worker);
  if (found == pushers_.end() || found->second.at == At::kNowhere) return "reconfigure";
  if (found->second.at == At::kIdle) return "shard_wait";
  return found->second.at == At::kComputing ? "compute" : "collective_wait";
}

void PushGroup::after(Worker& worker, double seconds, void (PushGroup::*what)(Worker&)) {
  const std::uint64_t turn = ++pusher(worker).turn;
  player_.world().after(from_seconds(seconds), [this, what, turn, &worker, member = worker.member] {
    const bool same = worker.alive && worker.member == member && pusher(worker).turn == turn;
    if (same) (this->*what)(worker);
  });
}

// ----------------------------------------------------------------- the group

void PushGroup::joined(Worker& process) { join(process); }

void PushGroup::join(Worker& process) {
  process.in_group = false;
  wire::Join join;
  join.pid = process.pid();
  if (process.is_server()) {
    join.collective = false;
    join.endpoint = to_string(process.member.worker);
    return player_.say(process, std::move(join));
  }
  begin_anew(process);
  join.data = {player_.spec().train_records, player_.spec().eval_records, "simulated", ""};
  join.step = step();
  if (const drill::Device* device = player_.emulation().device_of(process.member.worker)) {
    join.device = {device->name, device->memory};
  }
  player_.say(process, std::move(join));
}

void PushGroup::gone(Worker& process) { pushers_.erase(process.member.worker); }

void PushGroup::begin_group(Generation generation, const wire::PsServe& serve) {
  generation_ = generation;
  sync_ = serve.sync;
  closer_.emplace(barrier(), serve.version);
  for (auto& [worker, pusher] : pushers_) pusher.pushes = 0;
}

// The primary of the first server decides; the others are told what it decides, and agree.
void PushGroup::on(Worker& process, Generation generation, const wire::PsServe& serve) {
  process.generation = generation;
  const bool primary =
      serve.replica == wire::ReplicaRole::kAlone || serve.replica == wire::ReplicaRole::kPrimary;
  if (generation > generation_) begin_group(generation, serve);
  wire::PsServing serving;
  serving.number = serve.number;
  if (primary) serving.backed = serve.view;
  if (primary && serve.index == 0) {
    decide(ps::closer::WorkersAdded{members_of(serve.workers), serve.backups});
    for (const Member left : members_of(serve.leaving)) {
      decide(ps::closer::WorkerRevoked{left});
      serving.left.push_back(closer_->places(left));
    }
  }
  player_.say(process, std::move(serving));
}

// All servers are asked at one moment, so they write the same state.
void PushGroup::on(Worker& process, Generation generation, const wire::PsCut& cut) {
  if (generation != generation_) return;
  wire::PsSaved saved;
  saved.number = cut.number;
  saved.version = updates();
  if (process.member.worker.index == 0) saved.places = closer_->places();
  player_.say(process, std::move(saved));
}

void PushGroup::on(Worker& worker, Generation generation, const wire::PsRoster& roster) {
  if (worker.in_group && worker.generation == generation) return;
  worker.generation = generation;
  worker.in_group = true;
  worker.phase = 0;
  staleness_ = roster.staleness;
  begin_anew(worker);
}

// What was scheduled before is void.
void PushGroup::begin_anew(const Worker& worker) {
  Pusher fresh;
  fresh.turn = pusher(worker).turn + 1;
  pusher(worker) = fresh;
}

void PushGroup::on(Worker& worker, Generation generation, const wire::Abort&) {
  if (worker.in_group && worker.generation == generation) join(worker);
}

void PushGroup::on(Worker& process, Generation, const wire::Leave& leave) {
  const bool server = process.is_server();
  const auto found = pushers_.find(process.member.worker);
  const bool computes = !server && found != pushers_.end() && found->second.trains &&
                        found->second.at != At::kIdle && found->second.at != At::kNowhere;
  if (!computes) return player_.leave(process, leave.code);
  process.leaves = leave.code;
}

void PushGroup::on(Worker& worker, Generation, const wire::Plan& plan) {
  if (plan.version > worker.held.version) worker.take_up(plan);
}

void PushGroup::on(Worker& worker, Generation generation, const wire::PhaseStart& start) {
  if (!worker.in_group || generation != worker.generation || worker.phase == start.phase) return;
  if (start.what != wire::PhaseKind::kTrain) return;  // the servers write the model
  phase_ = start;
  worker.begin_phase(start.phase, player_.now());
  pusher(worker).trains = true;
  player_.fetch(worker);
  take(worker);
}

// ----------------------------------------------------------------- a batch

void PushGroup::take(Worker& worker) {
  Pusher& p = pusher(worker);
  if (worker.leaves) return leave_if_asked(worker);
  if (worker.held.version > worker.share.version) {
    worker.share = worker.held;
    p.is_first = true;
    worker.set_hold(player_.now(), true);
  }
  worker.records = 0;
  worker.own_s = 0;
  worker.computed = 0;
  player_.fetch(worker);
  worker.take();
  if (worker.records == 0) return rest(worker);
  p.began = player_.now();
  p.whole = worker.records >= worker.share.samples();
  pull(worker);
}

// With a barrier the worker has waited for the step before this one when it comes here.
void PushGroup::pull(Worker& worker) {
  Pusher& p = pusher(worker);
  p.at = At::kPulling;
  p.held = sync_ == SyncStrategy::kPsSsp && waits(p, least_pushes(nullptr));
  if (!p.held) return after(worker, player_.round_trip_s(), &PushGroup::compute);
  ++p.turn;  // let_pull() goes on
}

void PushGroup::compute(Worker& worker) {
  Pusher& p = pusher(worker);
  if (!player_.fits(worker)) return player_.out_of_memory(worker);
  p.version = updates();
  // A worker that was away continues with the others' numbers, so nobody waits for it to catch up.
  const bool returns = std::exchange(p.returns, false);
  if (returns && !barrier()) p.pushes = std::max(p.pushes, least_pushes(&worker).value_or(0));
  p.at = At::kComputing;
  worker.computed = worker.records;
  worker.own_s = player_.work(worker, worker.records);
  player_.fetch(worker);
  after(worker, worker.own_s + player_.round_trip_s(), &PushGroup::push);
}

// Until the ledger has taken back the records of a late push, nothing behind them is pushed.
void PushGroup::push(Worker& worker) {
  Pusher& p = pusher(worker);
  p.at = At::kPushing;
  if (worker.feed.gives_back()) {
    player_.fetch(worker);
    if (worker.feed.gives_back()) return after(worker, kLookAgainS, &PushGroup::push);
  }
  wire::PsCommit commit;
  commit.number = ++p.pushes;
  commit.version = p.version;
  commit.phase = phase_.phase;
  commit.from = worker.place;
  commit.to = worker.place + worker.records;
  commit.weight = static_cast<double>(worker.records);
  ++p.turn;
  decide(ps::closer::CommitHeard{worker.member, commit});
}

void PushGroup::decided(Worker& worker, const wire::PsDecided& said) {
  Pusher& p = pusher(worker);
  if (p.at != At::kPushing || said.number != p.pushes) return;
  const double wait_s = to_seconds(player_.now() - p.began) - worker.own_s;
  const bool is_first = std::exchange(p.is_first, false);
  worker.measured(wait_s, p.whole && !is_first, player_.now());
  if (said.status == wire::PsFate::kApplied) {
    worker.place += worker.records;
    worker.stable_place = worker.place;
    worker.feed.commit(worker.place, {}, player_.now());
    worker.set_hold(player_.now(), false);
    if (player_.now() - worker.progress_sent >= kPushProgressEvery) tell_progress(worker, false);
  } else {
    worker.samples_total -= worker.records;
    worker.feed.give_back(worker.records);
  }
  after(worker, 0, &PushGroup::take);
}

// It holds no records: nobody waits for it, until the phase is over or it is given some again.
void PushGroup::rest(Worker& worker) {
  Pusher& p = pusher(worker);
  const bool holds = worker.feed.in_hand() > 0;  // and has no part in the plan
  const bool over = !holds && worker.feed.take(1).status == client::TakeStatus::kEnd;
  if (p.at != At::kIdle || over) {
    p.at = At::kIdle;
    p.returns = true;
    decide(ps::closer::IdleHeard{worker.member});
  }
  if (over) {
    p.trains = false;
    p.at = At::kNowhere;
    ++p.turn;
    return tell_progress(worker, true);
  }
  after(worker, kLookAgainS, &PushGroup::take);
}

void PushGroup::leave_if_asked(Worker& worker) {
  tell_progress(worker, false);
  const std::uint32_t code = *std::exchange(worker.leaves, {});
  player_.leave(worker, code);
}

void PushGroup::tell_progress(Worker& worker, bool done) {
  worker.progress_sent = player_.now();
  worker.feed.place_was_sent(phase_.phase, worker.place);
  wire::Progress progress;
  progress.phase = phase_.phase;
  progress.step = step();
  progress.place = worker.place;
  progress.samples = worker.place;
  progress.plan = worker.share.version;
  progress.done = done;
  player_.say(worker, std::move(progress));
}

// ----------------------------------------------------------------- decisions

void PushGroup::decide(const ps::closer::Input& input) {
  ps::closer::Effects out;
  closer_->step(input, out);
  for (const ps::closer::Effect& effect : out) {
    if (const auto* answer = std::get_if<ps::closer::AnswerCommit>(&effect)) {
      Worker& to = player_.worker(answer->to.worker);
      if (to.alive && to.member == answer->to) decided(to, answer->decided);
    } else if (const auto* refused = std::get_if<ps::closer::RefuseCommit>(&effect)) {
      // A worker that was replaced meanwhile; its successor pushes.
      ++pusher(player_.worker(refused->to.worker)).turn;
    }
  }
  let_pull();
}

// Bounded staleness: the rows of a worker's next batch contain every worker's pushes up to
// `staleness` before it.
bool PushGroup::waits(const Pusher& pusher, std::optional<std::uint64_t> least) const {
  return least && pusher.pushes > staleness_ && *least < pusher.pushes - staleness_;
}

void PushGroup::let_pull() {
  if (sync_ != SyncStrategy::kPsSsp) return;
  const auto least = least_pushes(nullptr);
  for (auto& [id, pusher] : pushers_) {
    Worker& worker = player_.worker(id);
    if (pusher.at != At::kPulling || !pusher.held || !worker.alive) continue;
    if (waits(pusher, least)) continue;
    pusher.held = false;
    after(worker, player_.round_trip_s(), &PushGroup::compute);
  }
}

// The pushes of the worker that is furthest behind, of those that train; `but` does not count.
// Empty: there is none.
std::optional<std::uint64_t> PushGroup::least_pushes(const Worker* but) const {
  std::optional<std::uint64_t> least;
  for (const auto& [id, pusher] : pushers_) {
    const bool counts = pusher.trains && pusher.at != At::kIdle;
    if (!counts || (but != nullptr && id == but->member.worker)) continue;
    least = std::min(least.value_or(pusher.pushes), pusher.pushes);
  }
  return least;
}

}  // namespace antdt::fleet
