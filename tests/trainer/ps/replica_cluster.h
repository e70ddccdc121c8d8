// Servers of two processes each and their workers, as values: the seed determines when every
// message arrives, and the test when processes are lost.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/wire/envelope.h"
#include "tests/trainer/ps/stepped.h"
#include "trainer/ps/placement.h"
#include "trainer/ps/replica/copied.h"
#include "trainer/ps/replica/replica.h"
#include "trainer/ps/rows/rows.h"

namespace antdt::ps {

inline constexpr std::uint32_t kReplicaSets = 2;
inline constexpr std::uint32_t kWorkers = 3;
inline constexpr std::uint64_t kPushes = 12;  // of each worker

inline Member w(std::uint32_t index) { return {WorkerId{'w', index}, Attempt{1}}; }
inline std::uint64_t key_of(std::uint32_t worker, std::uint64_t push) {
  return worker * 1000 + push;
}

// Two replica_sets of a primary and a backup each, workers that ask again what was not answered,
// and links that keep the order of messages and lose all of them when an end is lost.
class Cluster {
 public:
  Cluster(Consistency consistency, std::uint64_t seed) : consistency_(consistency), random_(seed) {
    for (std::uint32_t set = 0; set < kReplicaSets; ++set) {
      for (const replica::Role role : {replica::Role::kPrimary, replica::Role::kBackup}) {
        node::Start start;
        start.index = set;
        start.servers = kReplicaSets;
        start.consistency = consistency;
        for (std::uint32_t i = 0; i < kWorkers; ++i) start.workers.push_back(w(i));
        processes_.push_back({set, start, std::make_unique<Replica>(start, role)});
      }
      primary_[set] = 2 * set;
    }
    for (std::uint32_t i = 0; i < kWorkers; ++i) {
      workers_.emplace_back();
      for (std::uint32_t set = 0; set < kReplicaSets; ++set) ask(i, set, tables());
    }
  }

  std::uint32_t below(std::uint64_t n) { return static_cast<std::uint32_t>(random_() % n); }
  [[nodiscard]] bool done() const {
    return std::ranges::all_of(workers_, [](const auto& x) { return x.number > kPushes; });
  }

  // Delivers one message.
  bool deliver() {
    std::vector<Link*> ready;
    for (auto& [ends, link] : links_) {
      if (!link.empty()) ready.push_back(&link);
    }
    if (ready.empty()) return false;
    Link& link = *ready[below(ready.size())];
    const auto arrive = std::move(link.front());
    link.pop_front();
    arrive();
    return true;
  }
  void tick() {
    for (std::size_t p = 0; p < processes_.size(); ++p) step(p, node::Input(node::TimePassed{}));
    for (std::uint32_t i = 0; i < kWorkers; ++i) {
      for (const auto& [set, open] : workers_[i].open) say(i, set);
    }
  }
  // One process of that replica set ends; the other process hears of it first, then all others.
  void lose(std::uint32_t set, bool the_primary) {
    const std::size_t first = 2 * set;
    if (!processes_[first].alive || !processes_[first + 1].alive) return;
    const std::size_t lost = the_primary ? primary_[set] : 4 * set + 1 - primary_[set];
    end(lost);
    const std::size_t other = 4 * set + 1 - lost;
    step(other, replica::BecameAlone{++view_[set]});
    primary_[set] = other;
  }
  // The lost process is started again, without a state.
  void start_again(std::uint32_t set) {
    const std::size_t joins = primary_[set] ^ 1U;
    if (processes_[joins].alive) return;
    const std::uint64_t view = ++view_[set];
    processes_[joins].alive = true;
    processes_[joins].replica =
        std::make_unique<Replica>(processes_[joins].start, replica::Role::kJoining, view);
    step(primary_[set], replica::BackupJoined{view});
  }
  // A process joins, and is lost before it counts.
  void lose_joining(std::uint32_t set) {
    const std::size_t joins = primary_[set] ^ 1U;
    if (!processes_[joins].alive || backed(set)) return;
    end(joins);
    step(primary_[set], replica::BecameAlone{++view_[set]});
  }
  [[nodiscard]] bool backed(std::uint32_t set) const {
    return processes_[primary_[set]].replica->backed();
  }
  // The child that makes the state for another one is lost.
  void lose_child(std::uint32_t set) { processes_[primary_[set]].state.clear(); }
  // A primary is replaced, and goes on because it has not been told.
  void replace(std::uint32_t set) {
    const std::size_t first = 2 * set;
    if (primary_[set] != first || !processes_[first].alive) return;
    if (!processes_[first + 1].alive) return;
    step(first + 1, replica::BecameAlone{++view_[set]});
    primary_[set] = first + 1;
  }

  // Expects that each push is once in the rows of every process that counts.
  void expect_exact() {
    for (std::uint32_t set = 0; set < kReplicaSets; ++set) {
      ServerNode& node = processes_[primary_[set]].replica->node();
      ASSERT_NE(node.store(), nullptr);
      if (consistency_ != Consistency::kBarrier) {
        EXPECT_EQ(node.version(), kWorkers * kPushes) << "of set " << set;
      }
      for (std::uint32_t i = 0; i < kWorkers; ++i) {
        for (std::uint64_t n = 1; n <= kPushes; ++n) {
          float value = 0;
          const std::uint64_t key = key_of(i, n);
          node.store()->read(0, {&key, 1}, reinterpret_cast<char*>(&value));
          EXPECT_EQ(value, 1) << "push " << n << " of w" << i << " at set " << set;
        }
      }
    }
  }

 private:
  using Link = std::deque<std::function<void()>>;
  struct Process {
    std::uint32_t set = 0;
    node::Start start;
    std::unique_ptr<Replica> replica;
    bool alive = true;
    std::uint64_t kept = 0;  // image that is made
    std::deque<StatePiece> state = {};
  };
  void end(std::size_t process) {
    processes_[process].alive = false;
    std::erase_if(links_, [&](const auto& l) {
      return l.first.first == name(process) || l.first.second == name(process);
    });
  }
  struct Worker {
    std::uint64_t number = 0;                      // of the push under way; 0: tables are opened
    std::uint64_t version = 0;                     // of its home
    std::map<std::uint32_t, node::Request> open;   // not answered yet, by set
    std::map<std::uint32_t, std::uint64_t> asked;  // the newest seq, by set
    std::uint64_t seq = 0;
  };

  static wire::PsOpen tables() { return {7, {{"t", 1, "sum", 0, 0, 0, "zero", 0}}}; }
  static std::string name(std::size_t process) { return fmt::format("p{}", process); }
  static std::string name_of(std::uint32_t worker) { return fmt::format("w{}", worker); }
  void send(const std::string& from, const std::string& to, std::function<void()> arrive) {
    links_[{from, to}].push_back(std::move(arrive));
  }

  // ------------------------------------------------------------------ workers

  void ask(std::uint32_t worker, std::uint32_t set, node::Request request) {
    workers_[worker].open[set] = std::move(request);
    say(worker, set);
  }
  void say(std::uint32_t worker, std::uint32_t set) {
    Worker& of = workers_[worker];
    const std::uint64_t seq = of.asked[set] = ++of.seq;
    const std::size_t process = primary_[set];
    const node::RequestHeard asked{
        {name_of(worker), w(worker), seq}, Generation{1}, of.open.at(set)};
    send(name_of(worker), name(process),
         [this, process, asked] { step(process, node::Input(asked)); });
  }
  void answered(std::uint32_t worker, std::uint32_t set, const ReplyTo& reply) {
    Worker& of = workers_[worker];
    if (!of.open.contains(set) || reply.to.seq != of.asked[set]) return;
    ASSERT_FALSE(std::holds_alternative<wire::Refused>(reply.body))
        << std::get<wire::Refused>(reply.body).reason;
    if (const auto* decided = std::get_if<wire::PsDecided>(&reply.body)) {
      ASSERT_EQ(decided->status, wire::PsFate::kApplied);
      of.version = decided->version;
      of.open.clear();
      return push(worker);
    }
    const bool staged = std::holds_alternative<wire::PsStaged>(reply.body);
    of.open.erase(set);
    if (!of.open.empty()) return;
    if (!staged) return push(worker);
    const std::uint64_t n = of.number;
    ask(worker, home_of(consistency_, {'w', worker}, kReplicaSets),
        wire::PsCommit{n, version(worker), 1, n - 1, n, 1.0 / weight()});
  }
  void push(std::uint32_t worker) {
    const std::uint64_t number = ++workers_[worker].number;
    if (number > kPushes) return;
    for (std::uint32_t set = 0; set < kReplicaSets; ++set) {
      ask(worker, set,
          wire::PsPush{
              number,
              version(worker),
              {{0, to_bytes(std::vector{key_of(worker, number)}), to_bytes(std::vector{1.0F})}}});
    }
  }
  std::uint64_t version(std::uint32_t worker) const {
    return consistency_ == Consistency::kBarrier ? workers_[worker].version : 0;
  }
  // With a barrier, all workers are in one step.
  double weight() const { return consistency_ == Consistency::kBarrier ? kWorkers : 1; }

  // ---------------------------------------------------------------- processes

  void step(std::size_t process, const replica::Input& event) {
    if (!processes_[process].alive) return;
    const replica::Effects effects = stepped(*processes_[process].replica, event);
    for (const replica::Effect& effect : effects) {
      std::visit([&](const auto& e) { run(process, e); }, effect);
    }
  }
  void run(std::size_t process, const node::Effect& effect) {
    const std::uint32_t set = processes_[process].set;
    if (const auto* reply = std::get_if<ReplyTo>(&effect)) {
      if (const auto* applied = std::get_if<wire::PsApplied>(&reply->body)) {
        // A reply to a server; seq identifies the server that asked.
        const auto asker = static_cast<std::size_t>(reply->to.seq);
        send(name(process), name(asker), [this, asker, set, applied = *applied] {
          step(asker, node::Input(node::DecisionsApplied{set, applied}));
        });
      } else {
        const std::uint32_t worker = reply->to.member.worker.index;
        send(name(process), name_of(worker),
             [this, worker, set, reply = *reply] { answered(worker, set, reply); });
      }
    } else if (const auto* tell = std::get_if<node::TellServer>(&effect)) {
      const std::size_t to = primary_[tell->server];
      const node::RequestHeard asked{
          {name(process), {WorkerId{'s', set}, Attempt{}}, process}, Generation{1}, tell->decision};
      send(name(process), name(to), [this, to, asked] { step(to, node::Input(asked)); });
    }
  }
  void run(std::size_t process, const replica::EventCopied& copied) {
    to_other(process, from_wire(to_wire(copied), Generation{1}).value());
  }
  void run(std::size_t process, const replica::CopiesTaken& taken) { to_other(process, taken); }
  void run(std::size_t process, const wire::PsImage& piece) { to_other(process, piece); }
  void run(std::size_t /*process*/, const replica::BreakUp& broken) {
    ADD_FAILURE() << broken.error;
  }
  void run(std::size_t process, const replica::KeepState& keep) {
    Process& of = processes_[process];
    of.kept = keep.image;
    of.state.clear();
    write_state(of.replica->node(), [&](const StatePiece& piece) { of.state.push_back(piece); });
  }
  void run(std::size_t process, const replica::MakePiece& make) {
    send(name(process), name(process), [this, process, image = make.image] {
      Process& of = processes_[process];
      if (image != of.kept) return;
      replica::PieceMade made{image, {}, of.state.empty() ? "the child was lost" : ""};
      if (!of.state.empty()) {
        made.piece = std::move(of.state.front());
        of.state.pop_front();
      }
      step(process, made);
    });
  }
  void run(std::size_t process, const replica::DropState&) { processes_[process].state.clear(); }
  template <class M>
  void to_other(std::size_t process, const M& message) {
    const std::size_t other = process ^ 1U;
    if (!processes_[other].alive) return;
    send(name(process), name(other), [this, other, message] { step(other, message); });
  }

  const Consistency consistency_;
  std::mt19937_64 random_;
  std::vector<Process> processes_;
  std::array<std::size_t, kReplicaSets> primary_{};  // whom everybody asks
  std::array<std::uint64_t, kReplicaSets> view_{1, 1};
  std::vector<Worker> workers_;
  std::map<std::pair<std::string, std::string>, Link> links_;
};

}  // namespace antdt::ps
