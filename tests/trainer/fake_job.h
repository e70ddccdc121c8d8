// An agent and a job daemon in one, small enough to see through, for tests of
// the members' life: forms one generation of `size` members and leads them
// through the phases.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/fs.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"
#include "trainer/client/environment.h"

namespace antdt::trainer {

class FakeJob {
 public:
  struct Phase {
    std::string what;  // "train", "eval"
    std::uint64_t records = 0;
  };
  FakeJob(std::uint32_t size, std::vector<Phase> phases, std::vector<wire::PlanEntry> plan)
      : size_(size), phases_(std::move(phases)), plan_{PlanVersion{1}, std::move(plan)} {
    phases_.push_back({"finish", 0});
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

  // When the members have made `step` steps: once each.
  void send_at_step(std::uint64_t step, wire::Plan plan) {
    const std::lock_guard lock(mutex_);
    plans_[step] = std::move(plan);
  }
  void send_at_step(std::uint64_t step, wire::CheckpointOrder order) {
    const std::lock_guard lock(mutex_);
    orders_[step] = order;
  }
  void leave_at_step(std::uint64_t step, WorkerId worker) {
    const std::lock_guard lock(mutex_);
    leaves_[step] = worker;
  }
  void abort_at_step(std::uint64_t step) {
    const std::lock_guard lock(mutex_);
    abort_step_ = step;
  }

  // After all members have ended.
  struct Seen {
    std::map<WorkerId, wire::Bye> byes;
    std::map<WorkerId, wire::Report> reports;
    std::vector<wire::CheckpointWritten> checkpoints;
    std::vector<wire::Progress> done;
    std::uint64_t evaluated = 0;
    std::uint64_t committed = 0;  // over all phases
    PlanVersion last_plan;
    Generation generation;
  };
  [[nodiscard]] Seen seen() const {
    const std::lock_guard lock(mutex_);
    Seen seen = seen_;
    seen.generation = generation_;
    return seen;
  }

 private:
  struct Peer {
    std::string id;
    wire::Address address;
    bool has_address = false;
    bool ready = false;
    std::uint64_t phase_done = 0;  // highest phase number that it finished
    std::uint64_t place = 0;       // in the phase
    std::uint64_t granted = 0;
    std::uint64_t last_seq = 0;
    wire::Grants last_reply;
  };

  [[nodiscard]] std::string path() const { return directory_ / "s"; }

  void run(transport::Socket& socket) {
    socket_ = &socket;
    while (!quit_) {
      if (!socket.wait_readable(std::chrono::milliseconds(2))) continue;
      while (auto packet = socket.receive()) {
        const auto envelope = wire::open_envelope(*packet);
        ASSERT_TRUE(envelope);
        const std::lock_guard lock(mutex_);
        Peer& peer = peers_[envelope->worker];
        peer.id = packet->peer;
        on(*envelope, packet->body, peer);
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
    for (const auto& [worker, peer] : peers_) send(worker, message);
  }
  [[nodiscard]] bool all(bool Peer::*flag) const {
    return peers_.size() == size_ &&
           std::all_of(peers_.begin(), peers_.end(), [&](auto& p) { return p.second.*flag; });
  }

  void on(const wire::Envelope& envelope, const std::string& body, Peer& peer) {
    const WorkerId worker = envelope.worker;
    if (envelope.kind == "hello") send(worker, wire::WorkerWelcome{1, "host-a", run_dir(), "{}"});
    if (envelope.kind == "join") on_join(*wire::decode<wire::Join>(body), envelope);
    if (envelope.kind == "address") {
      peer.address = *wire::decode<wire::Address>(body);
      peer.has_address = true;
      roster();
    }
    if (envelope.kind == "ready") {
      peer.ready = true;
      settle();
    }
    if (envelope.kind == "fetch") on_fetch(*wire::decode<wire::Fetch>(body), envelope, peer);
    if (envelope.kind == "progress") on_progress(*wire::decode<wire::Progress>(body), peer);
    if (envelope.kind == "report") {
      const auto report = *wire::decode<wire::Report>(body);
      wire::Report& sum = seen_.reports[worker];
      sum.batches += report.batches;
      sum.samples += report.samples;
      sum.skipped += report.skipped;
      sum.compute_us += report.compute_us;
      sum.samples_total = report.samples_total;
      sum.account = report.account;
    }
    if (envelope.kind == "checkpoint-written") {
      seen_.checkpoints.push_back(*wire::decode<wire::CheckpointWritten>(body));
    }
    if (envelope.kind == "bye") seen_.byes[worker] = *wire::decode<wire::Bye>(body);
  }

  void on_join(const wire::Join& join, const wire::Envelope& envelope) {
    if (!join.problem.empty() && envelope.generation == generation_) {
      send_all(wire::Abort{join.problem});
      generation_ = generation_.next();
      formed_ = rostered_ = false;
      for (auto& [worker, peer] : peers_) peer.has_address = false;
    }
    form();
  }
  void form() {
    if (peers_.size() < size_ || formed_) return;
    formed_ = true;
    for (const auto& [worker, peer] : peers_) send(worker, wire::Form{worker.index, size_, 99});
  }
  void roster() {
    if (!all(&Peer::has_address) || rostered_) return;
    rostered_ = true;
    wire::Roster roster;
    for (const auto& [worker, peer] : peers_) roster.members.push_back({worker, worker.index, ""});
    for (const auto& [worker, peer] : peers_) {
      const std::uint32_t rank = worker.index;
      roster.left = peers_[{'w', (rank + size_ - 1) % size_}].address.to_right;
      roster.right = peers_[{'w', (rank + 1) % size_}].address.to_left;
      send(worker, roster);
    }
  }
  void settle() {
    if (!all(&Peer::ready) || settled_) return;
    settled_ = true;
    send_all(wire::Settle{Step{0}, plan_});
    start_phase();
  }
  void start_phase() {
    cursor_ = 0;
    committed_ = 0;
    for (auto& [worker, peer] : peers_) peer.place = peer.granted = 0;
    const Phase& phase = phases_[phase_];
    send_all(wire::PhaseStart{phase_ + 1, phase.what, Epoch{0}, phase.records, 0});
  }
  void next_phase_if(bool over) {
    if (!over || phase_ + 1 >= phases_.size()) return;
    ++phase_;
    start_phase();
  }

  void on_fetch(const wire::Fetch& fetch, const wire::Envelope& envelope, Peer& peer) {
    if (envelope.seq == peer.last_seq) {  // its reply was slow or lost
      return send(envelope.worker, peer.last_reply, envelope.seq);
    }
    peer.last_seq = envelope.seq;
    wire::Grants& reply = peer.last_reply = {fetch.phase, "stale", {}, 0};
    const bool current = fetch.phase == phase_ + 1;
    if (fetch.phase < phase_ + 1) reply.status = "end";  // it had not heard of it yet
    if (current) {
      commit(fetch.place, peer);
      for (const auto& partial : fetch.partials) seen_.evaluated += partial.records;
      grant(fetch, peer, reply);
    }
    send(envelope.worker, reply, envelope.seq);
    if (current && phases_[phase_].what == "eval") {
      next_phase_if(committed_ == phases_[phase_].records);
    }
  }
  void commit(std::uint64_t place, Peer& peer) {
    if (place <= peer.place) return;
    committed_ += place - peer.place;
    seen_.committed += place - peer.place;
    peer.place = place;
  }
  void grant(const wire::Fetch& fetch, Peer& peer, wire::Grants& reply) {
    const std::uint64_t records = phases_[phase_].records;
    if (committed_ == records) {
      reply.status = "end";
    } else if (cursor_ == records && fetch.want > 0) {
      reply.status = "wait";
      reply.retry_ms = 1;
    } else {
      reply.status = "granted";
      const std::uint64_t count = std::min(fetch.want, records - cursor_);
      if (count == 0) return;
      reply.pieces.push_back({0, 0, records, cursor_, cursor_ + count, 0, false});
      cursor_ += count;
      peer.granted += count;
    }
  }

  void on_progress(const wire::Progress& progress, Peer& peer) {
    seen_.last_plan = std::max(seen_.last_plan, progress.plan);
    if (progress.phase == phase_ + 1) commit(progress.place, peer);
    for (auto at = plans_.begin(); at != plans_.end() && at->first <= progress.step.value;) {
      send_all(at->second);
      at = plans_.erase(at);
    }
    for (auto at = orders_.begin(); at != orders_.end() && at->first <= progress.step.value;) {
      send_all(at->second);
      at = orders_.erase(at);
    }
    for (auto at = leaves_.begin(); at != leaves_.end() && at->first <= progress.step.value;) {
      send(at->second, wire::Leave{"asked by the test", 75});
      at = leaves_.erase(at);
    }
    if (abort_step_ != 0 && progress.step.value >= abort_step_) {
      abort_step_ = 0;
      send_all(wire::Abort{"the test"});
      send_all(wire::Leave{"the test", 75});
    }
    if (!progress.done || progress.phase != phase_ + 1 || peer.phase_done == progress.phase) return;
    peer.phase_done = progress.phase;
    seen_.done.push_back(progress);
    next_phase_if(std::all_of(peers_.begin(), peers_.end(), [&](const auto& p) {
      return p.second.phase_done == progress.phase;
    }));
  }

  TempDir directory_;
  transport::Context context_;
  const std::uint32_t size_;
  std::vector<Phase> phases_;
  const wire::Plan plan_;
  std::map<std::uint64_t, wire::Plan> plans_;
  std::map<std::uint64_t, wire::CheckpointOrder> orders_;
  std::map<std::uint64_t, WorkerId> leaves_;
  std::uint64_t abort_step_ = 0;

  mutable std::mutex mutex_;
  transport::Socket* socket_ = nullptr;
  std::map<WorkerId, Peer> peers_;
  Generation generation_{1};
  bool formed_ = false, rostered_ = false, settled_ = false;
  std::size_t phase_ = 0;
  std::uint64_t cursor_ = 0, committed_ = 0;
  Seen seen_;
  std::atomic<bool> quit_ = false;
  std::thread thread_;
};

}  // namespace antdt::trainer
