// Whole jobs of `sync = "hybrid"`, in which members and servers are lost at any moment, members are
// cut off from one another, and messages are late, lost and repeated. The servers are real; members
// and the collective between them follow docs/synchronisation/hybrid.md.
//
// Whenever a member gets rows, and in each checkpoint, the rows must contain exactly the steps that
// the dense replica contains.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/ps/steps_job_parts.h"

namespace antdt::ps::steps_job {

class Job {
 public:
  Job(std::uint64_t seed, Sabotage sabotage) : random_(seed), sabotage_(sabotage) {
    workers_.resize(1 + below(6));
    server_count_ = 1 + static_cast<std::uint32_t>(below(3));
    begin_group({}, {});
  }

  // Why rows and replicas differ; empty: they never did.
  std::string run() {
    while (wrong_.empty() && !done()) {
      if (++turn_ == kMostTurns) return "it never ends";
      act();
    }
    count_taken_back();
    return wrong_;
  }
  std::uint64_t lost_workers = 0, lost_servers = 0, taken_back = 0, restored = 0;

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool chance(double p) { return std::uniform_real_distribution<double>()(random_) < p; }
  void wrong(std::string what) {
    if (wrong_.empty()) wrong_ = fmt::format("turn {}: {}", turn_, what);
  }
  bool done() const {
    return turn_ > kFaultyTurns && ring_.whole &&
           std::ranges::all_of(ring_.members, [&](std::size_t i) {
             return workers_[i].replica.step.value >= first_step_.value + kQuietSteps;
           });
  }

  void act() {
    if (turn_ <= kFaultyTurns && chance(0.02)) return fault();
    if (!ring_.whole && chance(0.1)) return form();
    if (!messages_.empty() && chance(0.7)) return deliver();
    if (chance(0.2)) return repeat();
    conclude_somewhere();
  }

  // ------------------------------------------------------------------ faults
  void fault() {
    for (Worker& worker : workers_) worker.lives = worker.lives && !worker.away;
    if (chance(0.12)) {
      ++lost_servers;
      lost_ = true;
    }
    for (Worker& worker : workers_) {
      if (!worker.lives || !chance(0.25)) continue;
      if (chance(0.3)) {
        worker.away = true;
      } else {
        worker.lives = false;
        ++lost_workers;
      }
    }
    while (workers_.size() < 40 && chance(0.4)) workers_.emplace_back();
    break_ring();
  }
  // Some of those who could still conclude the step do, and may all be lost with what only they
  // know; then all who notice stop.
  void break_ring() {
    const bool lost_with_it = chance(0.5);
    for (const std::size_t i : ring_.members) {
      Worker& worker = workers_[i];
      const bool could = worker.at == Worker::At::kGathering && gathered(worker);
      if (!could || !chance(0.4)) continue;
      conclude(i);
      if (worker.lives && lost_with_it) {
        worker.lives = false;
        ++lost_workers;
      }
    }
    ring_.whole = false;
    for (const std::size_t i : ring_.members) {
      if (!workers_[i].away) rest(workers_[i]);
    }
    // What is under way may arrive much later, and some of it never does.
    std::erase_if(messages_, [&](const Message&) { return chance(0.3); });
  }
  void rest(Worker& worker) {
    worker.at = Worker::At::kResting;
    worker.waits_for.clear();
  }

  // -------------------------------------------------------------- generations
  std::vector<std::size_t> present() const {
    std::vector<std::size_t> there;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (workers_[i].lives && !workers_[i].away) there.push_back(i);
    }
    return there;
  }
  void form() {
    if (present().empty()) workers_.emplace_back();
    const std::vector<std::size_t> members = present();
    const auto holds = [&](std::size_t i) {
      return base_ == Generation{} || workers_[i].settled == base_;
    };
    if (lost_ || std::ranges::none_of(members, holds)) return restore();
    newest_ = newest_.next();
    std::size_t source = members.front();
    for (const std::size_t i : members) {
      if (!holds(i)) continue;
      const bool further =
          !holds(source) || workers_[i].replica.step > workers_[source].replica.step;
      if (further) source = i;
    }
    // Where training begins, or begins again, one member reads what the others receive.
    const bool reads = base_ == Generation{};
    const Replica furthest = reads ? begun_with_ : workers_[source].replica;
    const bool fails = turn_ <= kFaultyTurns && chance(0.3);
    for (const std::size_t i : members) {
      Worker& worker = workers_[i];
      if (!reads && holds(i) && worker.replica.step == furthest.step) continue;
      if (fails && chance(0.5)) continue;
      worker.replica = furthest;
      if (sabotage_ == Sabotage::kForgetWeight) worker.replica.weight = 0;
      worker.settled = base_;
    }
    if (fails) return fail_to_form(members, source);
    settle(members);
  }
  void fail_to_form(const std::vector<std::size_t>& members, std::size_t source) {
    if (sabotage_ == Sabotage::kSpeakUnsettled) {
      const auto size = static_cast<std::uint32_t>(members.size());
      workers_[source].group = group_;
      for (std::uint32_t server = 0; server < server_count_; ++server) {
        send(source, server, Worker::At::kPulling,
             steps::RowsWanted{concluded(workers_[source], newest_, size)});
      }
    }
    if (chance(0.6)) {
      workers_[chance(0.6) ? source : members[below(members.size())]].lives = false;
      ++lost_workers;
    }
  }
  void settle(const std::vector<std::size_t>& members) {
    base_ = newest_;
    ring_ = Ring{newest_, members, true, {}, {}};
    sizes_[newest_] = static_cast<std::uint32_t>(members.size());
    first_step_ = workers_[members.front()].replica.step;
    for (std::uint32_t rank = 0; rank < members.size(); ++rank) {
      Worker& worker = workers_[members[rank]];
      worker.settled = newest_;
      worker.rank = rank;
      worker.group = group_;
      worker.cut = 0;
      begin_step(members[rank]);
    }
  }
  // Nobody has the replica, or the rows are lost.
  void restore() {
    ++restored;
    const auto whole = [&](const auto& c) {
      return c.second.dense && c.second.rows.size() == server_count_;
    };
    Replica replica;
    std::map<std::uint32_t, Row> rows;
    for (auto it = checkpoints_.rbegin(); it != checkpoints_.rend(); ++it) {
      if (!whole(*it)) continue;
      replica = *it->second.dense;
      for (const auto& [server, part] : it->second.rows) rows[server] = part.second;
      break;
    }
    std::erase_if(checkpoints_, [&](const auto& c) { return !whole(c); });
    begin_group(rows, replica.step);
    lost_ = false;
    base_ = {};
    begun_with_ = replica;
  }
  void begin_group(const std::map<std::uint32_t, Row>& rows, Step after) {
    ++group_;
    count_taken_back();
    servers_.clear();
    TableSpec spec;
    spec.name = "table";
    spec.rule.kind = UpdateRule::Kind::kSum;
    for (std::uint32_t i = 0; i < server_count_; ++i) {
      Store store({spec}, 1);
      const auto found = rows.find(i);
      if (found != rows.end()) {
        for (const auto& [key, value] : found->second) {
          store.put_new(0, std::vector{key}, std::vector{value});
        }
      }
      servers_.push_back(std::make_unique<RowServer>(std::move(store), StepServer(after)));
    }
  }

  void count_taken_back() {
    for (const auto& server : servers_) taken_back += server->steps.taken_back();
  }

  // ------------------------------------------------------------------- steps
  Update& update_of(Step step) {
    const auto [at, added] = ring_.updates.try_emplace(step, updates_.size());
    if (added) {
      Update& update = updates_.emplace_back();
      update.empty = chance(0.2);
      update.weight = update.empty || chance(0.1) ? 0 : 2;
      if (chance(0.2)) update.cut = ++cuts_;
      for (std::uint32_t rank = 0; rank < ring_.members.size() && !update.empty; ++rank) {
        Row& part = update.parts[rank];
        for (auto keys = below(5); keys > 0; --keys) {
          part[below(kKeys)] = static_cast<float>(2 * (1 + below(500)));
        }
      }
    }
    return updates_[at->second];
  }
  void begin_step(std::size_t index) {
    Worker& worker = workers_[index];
    if (update_of(worker.replica.step.next()).empty) return stage(index);
    worker.at = Worker::At::kPulling;
    worker.pulled.clear();
    ask_all(index);
  }
  void stage(std::size_t index) {
    Worker& worker = workers_[index];
    worker.at = Worker::At::kStaging;
    if (sabotage_ == Sabotage::kSkipEmpty && update_of(worker.replica.step.next()).empty) {
      return send_slot(worker);
    }
    ask_all(index);
  }
  void send_slot(Worker& worker) {
    worker.at = Worker::At::kGathering;
    worker.waits_for.clear();
    const bool of_ring = ring_.whole && worker.settled == ring_.generation;
    if (of_ring) ring_.slots[worker.replica.step.next()].insert(worker.rank);
  }
  bool gathered(const Worker& worker) const {
    if (worker.settled != ring_.generation) return false;
    const auto slots = ring_.slots.find(worker.replica.step.next());
    return slots != ring_.slots.end() && slots->second.size() == ring_.members.size();
  }
  void conclude_somewhere() {
    std::vector<std::size_t> able;
    for (const std::size_t i : ring_.members) {
      const Worker& worker = workers_[i];
      if (worker.lives && worker.at == Worker::At::kGathering && gathered(worker))
        able.push_back(i);
    }
    if (!able.empty()) conclude(able[below(able.size())]);
  }
  void conclude(std::size_t index) {
    Worker& worker = workers_[index];
    const Step step = worker.replica.step.next();
    const UpdateId id = ring_.updates.at(step);
    const Update& update = updates_[id];
    worker.replica.step = step;
    worker.replica.weight = update.weight;
    if (update.weight > 0) worker.replica.updates.push_back(id);
    worker.cut = update.cut;
    if (update.cut != 0 && worker.rank == 0) {
      checkpoints_[update.cut].dense = worker.replica;
      compare(checkpoints_[update.cut]);
    }
    begin_step(index);
  }

  // ----------------------------------------------------------------- messages
  static steps::Concluded concluded(const Worker& worker, Generation generation,
                                    std::uint32_t members) {
    return {generation, members, worker.replica.step, worker.replica.weight, 1, worker.cut, "here"};
  }
  void ask_all(std::size_t index) {
    for (std::uint32_t server = 0; server < server_count_; ++server) ask(index, server);
  }
  void ask(std::size_t index, std::uint32_t server) {
    Worker& worker = workers_[index];
    const steps::Concluded now = concluded(worker, worker.settled, sizes_.at(worker.settled));
    worker.waits_for.insert(server);
    if (worker.at == Worker::At::kPulling) {
      return send(index, server, worker.at, steps::RowsWanted{now});
    }
    Gradient gradient;
    const auto id = ring_.updates.find(worker.replica.step.next());
    if (worker.settled == ring_.generation && id != ring_.updates.end()) {
      const auto part = updates_[id->second].parts.find(worker.rank);
      if (part != updates_[id->second].parts.end()) {
        for (const auto& [key, value] : part->second) {
          if (key % server_count_ != server) continue;
          gradient.keys.push_back(key);
          gradient.values.push_back(value);
        }
      }
    }
    send(index, server, worker.at, steps::PartArrived{now, worker.rank, {{0, gradient}}});
  }
  void send(std::size_t index, std::uint32_t server, Worker::At at, steps::Input input) {
    messages_.push_back({index, server, workers_[index].group, at, std::move(input)});
  }
  // Requests that are not answered are sent again.
  void repeat() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (!workers_[i].lives || !sizes_.contains(workers_[i].settled)) continue;
      const std::set<std::uint32_t> servers = workers_[i].waits_for;
      for (const std::uint32_t server : servers) {
        if (chance(0.5)) ask(i, server);
      }
    }
  }
  void deliver() {
    const std::size_t at = below(messages_.size());
    Message message = messages_[at];
    if (chance(0.9)) {  // else it will arrive once more
      messages_[at] = std::move(messages_.back());
      messages_.pop_back();
    }
    if (lost_ || message.group != group_) return;
    RowServer& server = *servers_[message.server];
    if (sabotage_ != Sabotage::kNone) break_rule(message, server.steps.steps());
    const StepServer::Outcome outcome = server.steps.take(message.input, server.store);
    if (outcome.cut) write(*outcome.cut, message.server);
    answer(message, outcome, server);
  }
  static steps::Concluded& concluded_of(steps::Input& input) {
    return std::visit([](auto& i) -> steps::Concluded& { return i.concluded; }, input);
  }
  void break_rule(Message& message, const StagedSteps& steps) {
    steps::Concluded& c = concluded_of(message.input);
    if (sabotage_ == Sabotage::kNoTakeBack && c.generation > steps.generation() &&
        c.step < steps.after()) {
      c.step = steps.after();
    }
    if (sabotage_ == Sabotage::kNoFence && c.generation < steps.generation()) {
      c.generation = steps.generation();
      const auto size = sizes_.find(c.generation);
      if (size != sizes_.end()) c.members = size->second;
      if (auto* part = std::get_if<steps::PartArrived>(&message.input)) part->rank %= c.members;
    }
    if (sabotage_ == Sabotage::kCutLate) {
      auto& [number, step] = late_[message.server];
      if (c.cut > number) {
        number = c.cut;
        step = c.step;
      }
      c.cut = number != 0 && c.step > step ? number : 0;
    }
  }
  void answer(const Message& message, const StepServer::Outcome& outcome, RowServer& server) {
    if (const auto* unfit = std::get_if<steps::RefuseUnfit>(&outcome.answer)) {
      return wrong(unfit->why);
    }
    Worker& worker = workers_[message.sender];
    const steps::Concluded& c = std::visit(
        [](const auto& i) -> const steps::Concluded& { return i.concluded; }, message.input);
    const bool waits = worker.lives && worker.at == message.at && c.generation == worker.settled &&
                       c.step == worker.replica.step && worker.waits_for.contains(message.server);
    if (!waits) return;
    if (std::holds_alternative<steps::RefuseStale>(outcome.answer)) {
      // One that is cut off waits in vain, and the others do not.
      if (!worker.away) wrong("a member of the present generation is refused");
      return;
    }
    if (chance(0.1)) return;  // the answer is lost
    worker.waits_for.erase(message.server);
    if (worker.at == Worker::At::kPulling) compare(worker.replica, server.store, message.server);
    const bool enough = worker.waits_for.empty() ||
                        (sabotage_ == Sabotage::kGatherEarly && worker.at == Worker::At::kStaging);
    if (!enough) return;
    if (worker.at == Worker::At::kPulling) {
      // What it would stage is of a step of its own generation only.
      return worker.settled == ring_.generation ? stage(message.sender) : rest(worker);
    }
    send_slot(worker);
  }

  // ------------------------------------------------------------------- checks
  Row expected(const Replica& replica, std::uint32_t server) const {
    Row rows;
    for (std::uint64_t key = server; key < kKeys; key += server_count_) rows[key] = 0;
    for (const UpdateId id : replica.updates) {
      const Update& update = updates_[id];
      for (const auto& [rank, part] : update.parts) {
        for (const auto& [key, value] : part) {
          if (key % server_count_ == server) rows[key] += value;
        }
      }
    }
    return rows;
  }
  Row rows_of(Store& store, std::uint32_t server) const {
    Row rows;
    for (std::uint64_t key = server; key < kKeys; key += server_count_) {
      const std::vector<std::uint64_t> keys{key};
      store.read(0, keys, reinterpret_cast<char*>(&rows[key]));
    }
    return rows;
  }
  void compare(const Replica& replica, Store& store, std::uint32_t server) {
    if (rows_of(store, server) != expected(replica, server)) {
      wrong(fmt::format("after step {} the rows of s{} are not those of the replica", replica.step,
                        server));
    }
  }
  void write(const steps::WriteCut& cut, std::uint32_t server) {
    Checkpoint& checkpoint = checkpoints_[cut.number];
    checkpoint.rows[server] = {cut.step, rows_of(servers_[server]->store, server)};
    compare(checkpoint);
  }
  void compare(const Checkpoint& checkpoint) {
    if (!checkpoint.dense) return;
    for (const auto& [server, part] : checkpoint.rows) {
      if (part.first != checkpoint.dense->step) return wrong("a checkpoint is of two steps");
      if (part.second != expected(*checkpoint.dense, server)) {
        return wrong("the rows of a checkpoint are not those of its replica");
      }
    }
  }

  std::mt19937_64 random_;
  const Sabotage sabotage_;
  std::uint64_t turn_ = 0;
  std::vector<Worker> workers_;
  std::uint32_t server_count_ = 1;
  std::vector<std::unique_ptr<RowServer>> servers_;
  std::uint64_t group_ = 0;  // of servers
  bool lost_ = false;        // some of its rows
  Generation base_;          // whose replica goes on; 0: begun_with_
  Replica begun_with_;       // that of a checkpoint, or the beginning
  Generation newest_;
  Ring ring_;
  Step first_step_;  // of the ring
  std::map<Generation, std::uint32_t> sizes_;
  std::vector<Update> updates_;
  std::vector<Message> messages_;
  std::uint64_t cuts_ = 0;
  std::map<std::uint64_t, Checkpoint> checkpoints_;
  std::map<std::uint32_t, std::pair<std::uint64_t, Step>> late_;  // by server, for a broken rule
  std::string wrong_;
};

}  // namespace antdt::ps::steps_job
