// An agent and a job daemon in one small class, for tests of the members' life. It forms
// generations of the members that are there, grants records (those that a generation did not train
// are granted again in the next one) and leads the members through the phases.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/crypto/secret.h"
#include "core/os/fs.h"
#include "core/transport/socket.h"
#include "core/wire/membership_messages.h"
#include "core/wire/packet.h"
#include "core/wire/shard_messages.h"
#include "core/wire/training_messages.h"
#include "core/wire/worker_messages.h"
#include "tests/trainer/fake_records.h"
#include "tests/trainer/fake_script.h"
#include "trainer/client/environment.h"

namespace antdt::trainer {

class FakeJob {
 public:
  struct Phase {
    wire::PhaseKind what = wire::PhaseKind::kNone;
    std::uint64_t records = 0;
  };
  // The first `size` workers are waited for in the beginning.
  FakeJob(std::uint32_t size, std::vector<Phase> phases, std::vector<wire::PlanEntry> plan)
      : phases_(std::move(phases)), plan_{PlanVersion{1}, std::move(plan)} {
    for (std::uint32_t i = 0; i < size; ++i) expected_.insert({'w', i});
    phases_.push_back({wire::PhaseKind::kFinish, 0});
    records_ = FakeRecords(phase().records);
    auto socket = transport::Socket::bind_ipc(context_, path());
    EXPECT_TRUE(socket) << socket.error().message;
    thread_ = std::thread([this, s = std::move(*socket)]() mutable { run(s); });
  }
  ~FakeJob() {
    quit_ = true;
    thread_.join();
  }
  [[nodiscard]] client::Environment environment(std::uint32_t index) const {
    return {path(), "job-1", antdt::Member{WorkerId{'w', index}, Attempt{1}}, "antdt"};
  }
  [[nodiscard]] std::string run_dir() const { return directory_.path(); }

  // The faults, and when they happen.
  FakeScript script;

  // The worker's process has ended. Callable from any thread.
  void lose(WorkerId worker) {
    const std::lock_guard lock(mutex_);
    lost_.push_back(worker);
  }

  // Waits for the last message of a member, which may still be on its way when its process has
  // ended; not for ever, because it may be lost.
  void await_bye(WorkerId worker) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const auto said = [&] {
      const std::lock_guard lock(mutex_);
      return seen_.byes.contains(worker);
    };
    while (!said() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  }

  // Generations so far.
  [[nodiscard]] std::uint32_t settled() const {
    const std::lock_guard lock(mutex_);
    return seen_.settled;
  }

  // The results after all members have ended.
  struct Seen {
    std::map<WorkerId, wire::Bye> byes;
    std::map<WorkerId, wire::Report> reports;
    std::set<std::string> activities;
    std::vector<wire::CheckpointWritten> checkpoints;
    std::vector<wire::CheckpointBegun> begun;
    std::set<std::string> io;  // what members read, wrote or received
    std::vector<wire::Progress> done;
    std::vector<wire::StepHistory> histories;  // in the order in which they were told
    std::vector<wire::Join> joins;
    std::uint64_t evaluated = 0;
    std::uint64_t committed = 0;  // over all phases
    PlanVersion last_plan;
    Generation generation;
    std::uint32_t settled = 0;  // generations
    // The number of each generation's first phase, if that phase was not done yet.
    std::vector<std::uint64_t> settled_in;
  };
  [[nodiscard]] Seen seen() const {
    const std::lock_guard lock(mutex_);
    Seen seen = seen_;
    seen.generation = generation_;
    return seen;
  }

 private:
  enum class Stage { kGathering, kAddresses, kConnecting, kSettled };
  struct Peer {
    std::string id;
    std::optional<wire::Join> joined;
    bool was_form_sent = false;
    std::optional<wire::Address> address;
    std::optional<wire::Ready> ready;
    std::uint64_t phase_done = 0;  // highest phase number that it finished in this generation
    std::uint64_t last_seq = 0;
    wire::Grants last_reply;
  };

  [[nodiscard]] std::string path() const { return directory_ / "s"; }
  [[nodiscard]] std::uint64_t phase_number() const { return phase_ + 1; }
  [[nodiscard]] const Phase& phase() const { return phases_[phase_]; }

  void run(transport::Socket& socket) {
    socket_ = &socket;
    while (!quit_) {
      const bool readable = socket.wait_readable(std::chrono::milliseconds(2));
      const std::lock_guard lock(mutex_);
      for (const WorkerId worker : std::exchange(lost_, {})) on_lost(worker);
      if (!readable) continue;
      while (auto packet = socket.receive()) {
        const auto envelope = wire::open_envelope(*packet);
        ASSERT_TRUE(envelope);
        peers_[envelope->worker].id = packet->peer;
        on(*envelope, packet->body, peers_[envelope->worker]);
      }
    }
  }

  template <class T>
  void send(WorkerId worker, const T& message, std::uint64_t seq = 0) {
    wire::Envelope envelope;
    envelope.job = "job-1";
    envelope.worker = worker;
    envelope.attempt = Attempt{1};
    envelope.generation = generation_;
    envelope.seq = seq;
    wire::Packet packet = wire::make_packet(envelope, message);
    packet.peer = peers_[worker].id;
    static_cast<void>(socket_->send(packet));  // a member that has ended
  }
  template <class T>
  void send_all(const T& message) {
    for (const WorkerId worker : members_) send(worker, message);
  }
  // Whether all members of the generation have a value in this field.
  template <class Field>
  [[nodiscard]] bool all(Field Peer::*field) {
    return std::all_of(members_.begin(), members_.end(),
                       [&](WorkerId w) { return (peers_[w].*field).has_value(); });
  }
  [[nodiscard]] bool is_member(WorkerId worker) const {
    return std::find(members_.begin(), members_.end(), worker) != members_.end();
  }

  void on(const wire::Envelope& envelope, const std::string& body, Peer& peer) {
    const WorkerId worker = envelope.worker;
    const bool current = envelope.generation == generation_ && is_member(worker);
    if (envelope.kind == "hello") send(worker, wire::WorkerWelcome{1, "host-a", run_dir(), "{}"});
    if (envelope.kind == "join") on_join(*wire::decode<wire::Join>(body), envelope, peer);
    if (envelope.kind == "address" && current && stage_ == Stage::kAddresses) {
      peer.address = *wire::decode<wire::Address>(body);
      roster();
    }
    if (envelope.kind == "ready" && current && stage_ == Stage::kConnecting) {
      peer.ready = *wire::decode<wire::Ready>(body);
      keep(peer.ready->history);
      if (all(&Peer::ready)) settle();
    }
    if (envelope.kind == "fetch") on_fetch(*wire::decode<wire::Fetch>(body), envelope, peer);
    if (envelope.kind == "progress" && envelope.generation == settled_) {
      on_progress(*wire::decode<wire::Progress>(body), worker, peer);
    }
    if (envelope.kind == "report") on_report(worker, *wire::decode<wire::Report>(body));
    if (envelope.kind == "checkpoint-begun") {
      seen_.begun.push_back(*wire::decode<wire::CheckpointBegun>(body));
    }
    if (envelope.kind == "checkpoint-written") {
      on_checkpoint(*wire::decode<wire::CheckpointWritten>(body));
    }
    if (envelope.kind == "bye") {
      seen_.byes[worker] = *wire::decode<wire::Bye>(body);
      on_left(worker);
    }
  }

  void on_report(WorkerId worker, const wire::Report& report) {
    wire::Report& sum = seen_.reports[worker];
    sum.batches += report.batches;
    sum.samples += report.samples;
    sum.skipped += report.skipped;
    sum.compute_us += report.compute_us;
    sum.samples_total = report.samples_total;
    sum.account = report.account;
    sum.step = report.step;
    seen_.activities.insert(report.activity);
    if (!report.io.empty()) seen_.io.insert(report.io);
  }

  void on_checkpoint(const wire::CheckpointWritten& written) {
    keep(written.history);
    const bool again = std::any_of(seen_.checkpoints.begin(), seen_.checkpoints.end(),
                                   [&](const auto& c) { return c.number == written.number; });
    if (!again) seen_.checkpoints.push_back(written);
    if (written.phase != phase_number() || phase().what != wire::PhaseKind::kFinish) return;
    over_ = true;  // the model is kept
    for (const auto& [worker, peer] : peers_) send(worker, done());
  }
  [[nodiscard]] static wire::Leave done() { return {"the job is done", 0}; }

  // ------------------------------------------------------------- generations

  void on_join(const wire::Join& join, const wire::Envelope& envelope, Peer& peer) {
    const WorkerId worker = envelope.worker;
    if (over_) return send(worker, done());
    const bool heard = envelope.generation == generation_;
    const bool inside = is_member(worker) && stage_ != Stage::kGathering;
    if (inside && !heard) {  // sent again before it heard of the generation
      if (stage_ == Stage::kAddresses) form_for(worker);
      return;
    }
    if (!peer.joined) seen_.joins.push_back(join);
    if (!peer.joined && !join.unreadable.empty()) ++reader_;
    peer.joined = join;
    // The other members will notice the loss in their generation, or hear of it.
    if (inside && stage_ != Stage::kSettled) send_all(wire::Abort{join.problem});
    if (inside) stage_ = Stage::kGathering;
    for (const WorkerId other : members_) release_if_idle(other);
    form();
  }
  // A member in a collective notices that others have left it; one that waits for the next phase
  // does not.
  void release_if_idle(WorkerId worker) {
    const Peer& peer = peers_[worker];
    const bool in_collective =
        phase().what == wire::PhaseKind::kTrain && peer.phase_done != phase_number();
    if (stage_ != Stage::kGathering || peer.joined || in_collective) return;
    send(worker, wire::Abort{"the others have left"});
  }
  void on_lost(WorkerId worker) {
    expected_.erase(worker);
    peers_[worker].joined.reset();
    if (is_member(worker)) {
      send_all(wire::Abort{"a member was lost"});
      stage_ = Stage::kGathering;
    }
    form();
  }
  void on_left(WorkerId worker) {
    if (over_ || expected_.erase(worker) == 0) return;
    if (is_member(worker)) send_all(wire::Regroup{"a member left"});
    stage_ = Stage::kGathering;
    form();
  }
  void admit(WorkerId worker) {
    expected_.insert(worker);
    if (stage_ == Stage::kSettled) send_all(wire::Regroup{"a worker is ready to join"});
    form();
  }
  void form() {
    if (stage_ != Stage::kGathering || expected_.empty()) return;
    for (const WorkerId worker : expected_) {
      if (!peers_[worker].joined) return;
    }
    generation_ = generation_.next();
    stage_ = Stage::kAddresses;
    members_.assign(expected_.begin(), expected_.end());
    for (const WorkerId worker : members_) {
      peers_[worker].joined.reset();
      peers_[worker].address.reset();
      peers_[worker].ready.reset();
      form_for(worker);
    }
    if (generation_ != Generation{1} || !script.formation().aborts_first) return;
    send_all(wire::Abort{"the test"});
    stage_ = Stage::kGathering;
  }
  void form_for(WorkerId worker) {
    const auto rank = static_cast<std::uint32_t>(
        std::find(members_.begin(), members_.end(), worker) - members_.begin());
    const auto size = static_cast<std::uint32_t>(members_.size());
    const FakeScript::Formation wanted = script.formation();
    send(worker,
         wire::Form{rank, size, generation_.value, wanted.forgets_base ? Generation{} : settled_,
                    settled_ == Generation{} ? wanted.restore : std::string(), reader_ % size,
                    std::string(crypto::Secret::kBytes, 's')});
  }
  void roster() {
    if (!all(&Peer::address)) return;
    stage_ = Stage::kConnecting;
    wire::Roster roster;
    const std::size_t size = members_.size();
    for (std::size_t rank = 0; rank < size; ++rank) {
      roster.members.push_back({members_[rank], static_cast<std::uint32_t>(rank), "",
                                peers_[members_[rank]].address->at});
    }
    for (const auto& member : members_) send(member, roster);
  }
  void settle() {
    stage_ = Stage::kSettled;
    const wire::Ready state = *peers_[members_.front()].ready;
    for (const WorkerId worker : members_) {
      const wire::Ready& other = *peers_[worker].ready;
      EXPECT_EQ(other.step, state.step);
      EXPECT_EQ(other.state_hash, state.state_hash);
      EXPECT_EQ(other.phase, state.phase);
      ASSERT_EQ(other.places.size(), state.places.size());
      for (std::size_t i = 0; i < state.places.size(); ++i) {
        EXPECT_EQ(other.places[i].worker, state.places[i].worker);
        EXPECT_EQ(other.places[i].place, state.places[i].place);
      }
    }
    if (state.phase == phase_number()) {
      for (const auto& at : state.places) commit(at.worker, at.place);
    }
    records_.give_back();
    for (auto& [worker, peer] : peers_) peer.phase_done = 0;
    settled_ = generation_;
    ++seen_.settled;
    if (!records_.complete()) seen_.settled_in.push_back(phase_number());
    const wire::Settle order{state.step, plan_of_members()};
    if (const auto wanted = script.formation(); generation_ == wanted.unsettled) {
      send(wanted.settled_only, order);
      send_all(wire::Abort{"the test"});
      return;
    }
    send_all(order);
    start_phase();
    if (expected_.size() > members_.size()) send_all(wire::Regroup{"a worker is ready to join"});
  }
  [[nodiscard]] wire::Plan plan_of_members() const {
    wire::Plan plan = plan_;
    plan.version = std::max(plan.version, seen_.last_plan);
    plan.entries.clear();
    for (const WorkerId worker : members_) {
      const auto found = std::find_if(plan_.entries.begin(), plan_.entries.end(),
                                      [&](const auto& e) { return e.worker == worker; });
      plan.entries.push_back(found != plan_.entries.end() ? *found : plan_.entries.front());
      plan.entries.back().worker = worker;
    }
    return plan;
  }

  // ------------------------------------------------------------------ phases

  void start_phase() {
    send_all(wire::PhaseStart{phase_number(), phase().what, Epoch{0}, phase().records,
                              records_.committed()});
  }
  void next_phase_if(bool over) {
    if (!over || phase_ + 1 >= phases_.size()) return;
    EXPECT_TRUE(records_.all_handed_out()) << "a phase ended with records that nobody did";
    ++phase_;
    records_ = FakeRecords(phase().records);
    start_phase();
  }

  void on_fetch(const wire::Fetch& fetch, const wire::Envelope& envelope, Peer& peer) {
    if (envelope.seq == peer.last_seq) {  // its reply was slow or lost
      return send(envelope.worker, peer.last_reply, envelope.seq);
    }
    peer.last_seq = envelope.seq;
    wire::Grants& reply = peer.last_reply = {fetch.phase, wire::GrantStatus::kStale, {}, 0};
    const bool of_this_generation = envelope.generation == settled_;
    const bool current = of_this_generation && fetch.phase == phase_number();
    if (of_this_generation && fetch.phase < phase_number()) {
      reply.status = wire::GrantStatus::kEnd;  // it had not heard of it yet
    }
    if (current) {
      commit(envelope.worker, fetch.place);
      for (const auto& partial : fetch.partials) seen_.evaluated += partial.records;
      grant(fetch, envelope.worker, reply);
    }
    send(envelope.worker, reply, envelope.seq);
    if (!current || phase().what != wire::PhaseKind::kEval) return;
    for (const WorkerId worker : script.take_admitted_at(records_.committed())) admit(worker);
    next_phase_if(records_.complete() && stage_ == Stage::kSettled);
  }
  void commit(WorkerId worker, std::uint64_t place) {
    seen_.committed += records_.commit(worker, place);
  }
  void grant(const wire::Fetch& fetch, WorkerId worker, wire::Grants& reply) {
    if (stage_ == Stage::kSettled && records_.complete()) {
      reply.status = wire::GrantStatus::kEnd;
    } else if (stage_ != Stage::kSettled || (records_.all_handed_out() && fetch.want > 0)) {
      reply.status = wire::GrantStatus::kWait;
      reply.retry_ms = 1;
    } else {
      reply.status = wire::GrantStatus::kGranted;
      reply.pieces = records_.hand_out(worker, fetch.want);
    }
  }

  // Nothing is ever acknowledged, so each reporter reports all steps of its generation.
  void keep(const wire::StepHistory& history) {
    if (!history.runs.empty()) seen_.histories.push_back(history);
  }
  void on_progress(const wire::Progress& progress, WorkerId worker, Peer& peer) {
    keep(progress.history);
    seen_.last_plan = std::max(seen_.last_plan, progress.plan);
    if (progress.phase == phase_number()) commit(worker, progress.place);
    follow_script(progress.step.value);
    if (!progress.done || progress.phase != phase_number() || peer.phase_done == progress.phase) {
      return;
    }
    peer.phase_done = progress.phase;
    seen_.done.push_back(progress);
    if (stage_ != Stage::kSettled) return release_if_idle(worker);
    next_phase_if(std::all_of(members_.begin(), members_.end(),
                              [&](WorkerId w) { return peers_[w].phase_done == progress.phase; }));
  }
  void follow_script(std::uint64_t step) {
    const FakeScript::Due due = script.take_due(step);
    for (const wire::Plan& plan : due.plans) send_all(plan);
    for (const wire::CheckpointOrder& order : due.orders) send_all(order);
    for (const WorkerId worker : due.leaves) send(worker, wire::Leave{"asked by the test", 75});
    for (const WorkerId worker : due.admissions) admit(worker);
    if (!due.abort) return;
    send_all(wire::Abort{"the test"});
    if (*due.abort) send_all(wire::Leave{"the test", 75});
  }

  TempDir directory_;
  transport::Context context_;
  std::vector<Phase> phases_;
  const wire::Plan plan_;
  std::uint32_t reader_ = 0;  // of the checkpoint: a rank
  bool over_ = false;
  std::vector<WorkerId> lost_;

  mutable std::mutex mutex_;
  transport::Socket* socket_ = nullptr;
  std::map<WorkerId, Peer> peers_;
  std::set<WorkerId> expected_;
  std::vector<WorkerId> members_;  // of the newest generation, by rank
  Generation generation_;          // the newest number
  Generation settled_;             // the newest that settled
  Stage stage_ = Stage::kGathering;
  std::size_t phase_ = 0;
  FakeRecords records_;
  Seen seen_;
  std::atomic<bool> quit_ = false;
  std::thread thread_;
};

}  // namespace antdt::trainer
