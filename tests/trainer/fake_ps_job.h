// An agent, a job daemon and its parameter servers in one, for tests of the life of their workers.
// It forms groups of the workers that are there, grants records and leads the workers through the
// phases. A new group begins with empty servers, and so at the beginning of its phase.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/os/fs.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"
#include "core/wire/shard_messages.h"
#include "core/wire/worker_messages.h"
#include "tests/trainer/ps_link/server_thread.h"
#include "trainer/client/environment.h"
#include "trainer/ps/placement.h"

namespace antdt::trainer {

// How workers wait for each other, and the faults; by default there are none.
struct PsFaults {
  SyncStrategy sync = SyncStrategy::kPsBsp;
  std::uint64_t staleness = 0;
  std::uint32_t backups = 0;
  std::set<WorkerId> starved;          // are granted no records to train
  std::set<WorkerId> roster_lost_for;  // once
  std::set<WorkerId> phase_lost_for;   // once
  bool first_servers_are_dead = false;
  bool first_group_ends_at_once = false;  // before its orders can be obeyed
};

class FakePsJob {
 public:
  struct Phase {
    wire::PhaseKind what = wire::PhaseKind::kNone;
    std::uint64_t records = 0;
  };
  FakePsJob(std::uint32_t workers, std::vector<Phase> phases, PsFaults faults = {})
      : phases_(std::move(phases)), faults_(std::move(faults)) {
    for (std::uint32_t i = 0; i < workers; ++i) expected_.insert({'w', i});
    phases_.push_back({wire::PhaseKind::kFinish, 0});
    plan_.version = PlanVersion{1};
    for (const WorkerId worker : expected_) plan_.entries.push_back({worker, 5, 2});
    auto socket = transport::Socket::bind_ipc(context_, path());
    EXPECT_TRUE(socket) << socket.error().message;
    thread_ = std::thread([this, s = std::move(*socket)]() mutable { run(s); });
  }
  ~FakePsJob() {
    quit_ = true;
    thread_.join();
  }
  [[nodiscard]] client::Environment environment(std::uint32_t index) const {
    return {path(), "job-1", antdt::Member{WorkerId{'w', index}, Attempt{1}}, "antdt"};
  }

  // Ends the group soon. May be called from any thread.
  void end_group(const std::string& reason) {
    post([this, reason] { dissolve(reason); });
  }
  void ask_to_leave(WorkerId worker) {
    post([this, worker] { send(worker, wire::Leave{"asked by the test", 75}); });
  }
  void send_plan(wire::Plan plan) {
    post([this, plan = std::move(plan)] {
      plan_ = plan;
      for (const WorkerId worker : members_) send(worker, plan_);
    });
  }
  // The worker is granted records again.
  void feed(WorkerId worker) {
    post([this, worker] { faults_.starved.erase(worker); });
  }
  // Ends all workers, whatever they wait for.
  void give_up() {
    post([this] {
      dissolve("the test has failed");
      over_ = true;
      for (const auto& [worker, peer] : peers_) send(worker, wire::Leave{"the test", 1});
    });
  }

  // The statistics of the newest group, by server.
  [[nodiscard]] std::vector<wire::PsStats> stats() const {
    const std::lock_guard lock(mutex_);
    std::vector<wire::PsStats> stats;
    for (const auto& server : servers_) {
      stats.push_back(server->ask([](ps::ServerLoop& s) { return s.stats(); }));
    }
    return stats;
  }

  struct Seen {
    std::map<WorkerId, wire::Bye> byes;
    std::map<WorkerId, wire::Report> reports;              // sums
    std::map<WorkerId, std::vector<wire::Progress>> done;  // by worker, one a phase
    std::map<WorkerId, wire::Progress> progress;           // the newest
    std::map<WorkerId, std::set<Generation>> left;  // the generations that it joined again after
    std::uint64_t evaluated = 0;
    std::uint64_t committed = 0;  // over all phases of the newest group
    std::uint64_t late = 0;
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
    bool joined = false;
    std::uint64_t phase_done = 0;
    std::uint64_t place = 0;           // in the phase and the generation
    std::vector<wire::Piece> granted;  // likewise
    std::uint64_t last_seq = 0;
    wire::Grants last_reply;
  };

  [[nodiscard]] std::string path() const { return directory_ / "agent"; }
  [[nodiscard]] std::uint64_t phase_number() const { return phase_ + 1; }
  [[nodiscard]] const Phase& phase() const { return phases_[phase_]; }
  void post(std::function<void()> action) {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(action));
  }

  void run(transport::Socket& socket) {
    socket_ = &socket;
    while (!quit_) {
      const bool readable = socket.wait_readable(std::chrono::milliseconds(2));
      const std::lock_guard lock(mutex_);
      for (const auto& action : std::exchange(posted_, {})) action();
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
    static_cast<void>(socket_->send(packet));  // a worker that has ended
  }

  void on(const wire::Envelope& envelope, const std::string& body, Peer& peer) {
    const WorkerId worker = envelope.worker;
    const bool current = envelope.generation == generation_ && members_.contains(worker);
    if (envelope.kind == "hello") {
      send(worker, wire::WorkerWelcome{1, "host-a", directory_.path(), "{}"});
    }
    if (envelope.kind == "join") on_join(*wire::decode<wire::Join>(body), envelope, peer);
    if (envelope.kind == "fetch") on_fetch(*wire::decode<wire::Fetch>(body), envelope, peer);
    if (envelope.kind == "progress" && current) {
      on_progress(*wire::decode<wire::Progress>(body), worker, peer);
    }
    if (envelope.kind == "report") on_report(worker, *wire::decode<wire::Report>(body));
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
    sum.samples_total = report.samples_total;
  }

  // ------------------------------------------------------------------ groups

  void on_join(const wire::Join& join, const wire::Envelope& envelope, Peer& peer) {
    const WorkerId worker = envelope.worker;
    EXPECT_TRUE(join.collective) << "it is a worker of this job";
    EXPECT_EQ(join.problem, "");
    if (over_) return send(worker, wire::Leave{"the job is done", 0});
    if (envelope.generation > Generation{}) seen_.left[worker].insert(envelope.generation);
    if (members_.contains(worker)) {
      if (envelope.generation < generation_) return give_orders(worker);
      dissolve("a worker has left it");
    }
    peer.joined = true;
    form();
  }
  void dissolve(const std::string& reason) {
    for (const WorkerId worker : std::exchange(members_, {})) send(worker, wire::Abort{reason});
    servers_.clear();
  }
  void form() {
    for (const WorkerId worker : expected_) {
      if (!peers_[worker].joined) return;
    }
    generation_ = generation_.next();
    members_ = expected_;
    start_servers();
    cursor_ = committed_ = seen_.committed = 0;
    returned_.clear();
    late_.clear();
    for (const WorkerId worker : members_) {
      peers_[worker].joined = false;
      peers_[worker].phase_done = 0;
      forget_grants(peers_[worker]);
      give_orders(worker);
    }
    if (std::exchange(faults_.first_group_ends_at_once, false)) dissolve("the test");
  }
  void start_servers() {
    group_ = {};
    group_.generation = generation_;
    group_.backups = faults_.backups;
    group_.consistency = *ps::consistency_of(faults_.sync);
    for (int i = 0; i < 2; ++i) {
      group_.sockets.push_back(directory_ / fmt::format("s{}.{}", i, generation_));
    }
    for (const WorkerId worker : members_) group_.workers.push_back({worker, Attempt{1}});
    servers_.clear();
    if (std::exchange(faults_.first_servers_are_dead, false)) return;
    for (std::uint32_t i = 0; i < 2; ++i) {
      servers_.push_back(std::make_unique<ps::ServerThread>(group_, i));
    }
  }
  void give_orders(WorkerId worker) {
    send(worker, plan_);
    if (faults_.roster_lost_for.erase(worker) == 0) {
      send(worker, wire::PsRoster{group_.sockets, faults_.sync, faults_.staleness});
    }
    if (faults_.phase_lost_for.erase(worker) == 0) start_phase(worker);
  }

  // The report of its home counts, and the other workers train the missing records.
  void on_left(WorkerId worker) {
    expected_.erase(worker);
    Peer& peer = peers_[worker];
    peer.joined = false;
    if (over_ || members_.erase(worker) == 0 || servers_.empty()) return;
    wire::PsServe serve;
    serve.number = ++serve_number_;
    serve.servers = group_.sockets;
    serve.sync = faults_.sync;
    for (const WorkerId other : members_) serve.workers.push_back({other, Attempt{1}});
    serve.leaving.push_back({worker, Attempt{1}});
    for (std::uint32_t i = 0; i < servers_.size(); ++i) {
      serve.index = i;
      servers_[i]->ask([&](ps::ServerLoop& server) {
        server.serve(serve);
        return true;
      });
    }
    const std::uint32_t home = ps::home_of(group_.consistency, worker, servers_.size());
    const auto left =
        servers_[home]->ask([&](ps::ServerLoop& server) { return server.left(serve.leaving); });
    ASSERT_EQ(left.size(), 1U);
    if (left[0].phase == phase_number() && !left[0].applied.empty()) {
      ASSERT_EQ(left[0].applied.size(), 1U) << "no batch is left out";
      commit(left[0].applied[0].to, peer);
    }
    give_back(peer);
  }
  void give_back(Peer& peer) {
    std::uint64_t done = peer.place;
    for (wire::Piece piece : peer.granted) {
      const std::uint64_t used = std::min(done, piece.to - piece.from);
      done -= used;
      piece.from += used;
      if (piece.from < piece.to) returned_.push_back(piece);
    }
    EXPECT_EQ(done, 0U) << "a worker did more than it was given";
    forget_grants(peer);
  }
  static void forget_grants(Peer& peer) {
    peer.granted.clear();
    peer.place = 0;
  }

  // ------------------------------------------------------------------ phases

  void start_phase(WorkerId worker) {
    send(worker,
         wire::PhaseStart{phase_number(), phase().what, Epoch{0}, phase().records, committed_});
  }
  void next_phase() {
    EXPECT_TRUE(returned_.empty() && late_.empty()) << "a phase ended with records that nobody did";
    EXPECT_EQ(committed_, phase().records);
    ++phase_;
    cursor_ = committed_ = 0;
    over_ = phase().what == wire::PhaseKind::kFinish;
    for (const WorkerId worker : members_) {
      forget_grants(peers_[worker]);
      start_phase(worker);
      if (over_) send(worker, wire::Leave{"the job is done", 0});
    }
  }
  void on_progress(const wire::Progress& progress, WorkerId worker, Peer& peer) {
    seen_.progress[worker] = progress;
    if (progress.phase != phase_number()) return;
    commit(progress.place, peer);
    if (!progress.done || peer.phase_done == progress.phase) return;
    peer.phase_done = progress.phase;
    seen_.done[worker].push_back(progress);
    const bool all = std::all_of(members_.begin(), members_.end(), [&](WorkerId w) {
      return peers_[w].phase_done == phase_number();
    });
    if (all) next_phase();
  }
  void on_fetch(const wire::Fetch& fetch, const wire::Envelope& envelope, Peer& peer) {
    if (envelope.seq == peer.last_seq) {  // its reply was slow or lost
      return send(envelope.worker, peer.last_reply, envelope.seq);
    }
    peer.last_seq = envelope.seq;
    wire::Grants& reply = peer.last_reply = {fetch.phase, wire::GrantStatus::kStale, {}, 0};
    const bool inside = envelope.generation == generation_ && members_.contains(envelope.worker);
    if (inside && fetch.phase < phase_number()) reply.status = wire::GrantStatus::kEnd;
    if (inside && fetch.phase == phase_number()) {
      commit(fetch.place, peer);
      take_back_late(fetch, envelope.worker, peer);
      for (const auto& partial : fetch.partials) seen_.evaluated += partial.records;
      grant(fetch, envelope.worker, peer, reply);
    }
    send(envelope.worker, reply, envelope.seq);
    if (inside && phase().what == wire::PhaseKind::kEval && committed_ == phase().records)
      next_phase();
  }
  void commit(std::uint64_t place, Peer& peer) {
    if (place <= peer.place) return;
    committed_ += place - peer.place;
    seen_.committed += place - peer.place;
    peer.place = place;
  }
  // Records behind its position came too late; the rest of its records move there.
  void take_back_late(const wire::Fetch& fetch, WorkerId worker, Peer& peer) {
    std::vector<wire::Piece> kept;
    std::uint64_t at = 0;  // of the piece, as places are
    for (const wire::Piece& piece : peer.granted) {
      const auto clamped = [&](std::uint64_t place) {
        return std::clamp(place, at, at + piece.to - piece.from) - at + piece.from;
      };
      const std::uint64_t from = clamped(fetch.place), to = clamped(fetch.place + fetch.late);
      at += piece.to - piece.from;
      std::vector<wire::Piece> parts{piece, piece, piece};
      parts[0].to = parts[1].from = from;
      parts[1].to = parts[2].from = to;
      if (from < to) late_.emplace_back(parts[1], worker);
      for (const int part : {0, 2}) {
        if (parts[part].from < parts[part].to) kept.push_back(parts[part]);
      }
    }
    seen_.late += fetch.late;
    peer.granted = kept;
  }
  // A worker is not granted the records again that it gave back itself.
  void release_late(WorkerId to) {
    for (const auto& [piece, of] : late_) {
      if (of != to) returned_.push_back(piece);
    }
    std::erase_if(late_, [&](const auto& late) { return late.second != to; });
  }
  void grant(const wire::Fetch& fetch, WorkerId worker, Peer& peer, wire::Grants& reply) {
    release_late(worker);
    const bool starved =
        phase().what == wire::PhaseKind::kTrain && faults_.starved.contains(worker);
    reply.status = wire::GrantStatus::kGranted;
    reply.retry_ms = 1;
    if (committed_ == phase().records) {
      reply.status = wire::GrantStatus::kEnd;
    } else if (fetch.want > 0 && (starved || (cursor_ == phase().records && returned_.empty()))) {
      reply.status = wire::GrantStatus::kWait;
    }
    if (reply.status != wire::GrantStatus::kGranted) return;
    std::uint64_t want = fetch.want;
    while (want > 0 && (!returned_.empty() || cursor_ < phase().records)) {
      const wire::Piece piece = next_piece(want);
      want -= piece.to - piece.from;
      peer.granted.push_back(piece);
      reply.pieces.push_back(piece);
    }
  }
  // Records that were given back are granted first.
  [[nodiscard]] wire::Piece next_piece(std::uint64_t want) {
    if (returned_.empty()) {
      const std::uint64_t from = cursor_;
      cursor_ = std::min(phase().records, cursor_ + want);
      return {0, 0, phase().records, from, cursor_, 0, false};
    }
    wire::Piece piece = returned_.front();
    piece.to = std::min(piece.to, piece.from + want);
    returned_.front().from = piece.to;
    if (returned_.front().from == returned_.front().to) returned_.pop_front();
    return piece;
  }

  TempDir directory_;
  transport::Context context_;
  std::vector<Phase> phases_;
  PsFaults faults_;
  wire::Plan plan_;

  mutable std::mutex mutex_;
  std::deque<std::function<void()>> posted_;
  transport::Socket* socket_ = nullptr;
  std::map<WorkerId, Peer> peers_;
  std::set<WorkerId> expected_;  // that are alive
  std::set<WorkerId> members_;   // of the group, while there is one
  Generation generation_;
  ps::Group group_;
  std::uint64_t serve_number_ = 1;
  std::vector<std::unique_ptr<ps::ServerThread>> servers_;
  std::size_t phase_ = 0;
  std::uint64_t cursor_ = 0, committed_ = 0;
  std::deque<wire::Piece> returned_;
  std::vector<std::pair<wire::Piece, WorkerId>> late_;  // and whose
  bool over_ = false;
  Seen seen_;
  std::atomic<bool> quit_ = false;
  std::thread thread_;
};

}  // namespace antdt::trainer
