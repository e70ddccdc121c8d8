// A checkpoint of servers that decide separately: whatever the order of messages, it contains the
// same pushes on all of them, and its places match those.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "tests/sanitized.h"
#include "trainer/ps/closer.h"
#include "trainer/ps/rows/rows.h"
#include "trainer/ps/server.h"

namespace antdt::ps::cut_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint32_t kServers = 3;
constexpr std::uint32_t kWorkers = 5;

// Three servers, all of them homes; decisions travel between them in order, at a different pace
// each way. Push `n` of a worker is place n, and sets the worker's row on each server.
class Cluster {
 public:
  struct Cut {
    std::uint64_t version = 0;
    std::set<std::uint64_t> rows;
    std::vector<wire::PsPlaces> places;  // of the workers whose home this is
  };

  Cluster() {
    std::vector<ReplyTo> replies;
    for (std::uint32_t i = 0; i < kWorkers; ++i) workers_.push_back(member(i, 1));
    for (std::uint32_t s = 0; s < kServers; ++s) {
      Node& node = nodes_.emplace_back();
      node.server.add_workers(workers_);
      node.server.on({"", workers_[0], 1}, wire::PsOpen{1, {{"t", 1, "sum", 0, 0, 0, "zero", 0}}},
                     replies);
      add_to_home(s, workers_);
    }
  }
  static Member member(std::uint32_t index, std::uint32_t attempt) {
    return {WorkerId{'w', index}, Attempt{attempt}};
  }
  static std::uint64_t row_of(Member m, std::uint64_t number) {
    return m.worker.index * 1'000'000 + m.attempt.value * 10'000 + number;
  }

  void push(std::uint32_t index) {
    const Member m = workers_[index];
    const std::uint64_t number = ++numbers_[m];
    const wire::PsRows row{0, to_bytes(std::vector{row_of(m, number)}),
                           to_bytes(std::vector{1.0F})};
    std::vector<ReplyTo> replies;
    for (Node& node : nodes_) node.server.on({"", m, 1}, wire::PsPush{number, 0, {row}}, replies);
    // While one decision is held back, the ninth push is staged and not answered: it is not
    // committed.
    const auto staged = std::ranges::count_if(
        replies, [](const ReplyTo& r) { return std::holds_alternative<wire::PsStaged>(r.body); });
    if (staged < kServers) return;
    closer::Effects effects;
    nodes_[home_of(m)].closer.step(closer::CommitHeard{m, {number, 0, 1, number - 1, number, 1}},
                                   effects);
    run(home_of(m), effects);
  }
  // Its home refuses it from now on; the next attempt begins.
  wire::PsPlaces revoke(std::uint32_t index) {
    const Member old = workers_[index];
    const std::uint32_t home = home_of(old);
    closer::Effects effects;
    nodes_[home].closer.step(closer::WorkerRevoked{old}, effects);
    const wire::PsPlaces places = nodes_[home].closer.places(old);
    nodes_[home].settled.push_back(places);
    run(home, effects);
    workers_[index] = member(index, old.attempt.value + 1);
    for (Node& node : nodes_) node.server.add_workers({workers_[index]});
    add_to_home(home, {workers_[index]});
    return places;
  }
  // Orders a cut from one server.
  void order(std::uint32_t at, std::uint64_t number) {
    Node& node = nodes_[at];
    closer::Effects effects;
    node.closer.step(closer::CutMarked{number, "here"}, effects);
    if (effects.empty()) return;
    node.at_marker[number] = node.closer.places();
    std::ranges::copy(node.settled, std::back_inserter(node.at_marker[number]));
    run(at, effects);
  }
  // Delivers one decision, if there is any, and sometimes one that was delivered before.
  bool deliver(std::uint32_t from, std::uint32_t to, bool again = false) {
    Node& node = nodes_[from];
    std::size_t& next = node.sent[to];
    if (again && next > 0) hear(from, to, node.said[next - 1]);
    if (next == node.said.size()) return false;
    const wire::PsDecision decision = node.said[next++];
    hear(from, to, decision);
    return true;
  }
  void deliver_all() {
    for (bool some = true; some;) {
      some = false;
      for (std::uint32_t from = 0; from < kServers; ++from) {
        for (std::uint32_t to = 0; to < kServers; ++to) {
          while (from != to && deliver(from, to)) some = true;
        }
      }
    }
  }
  [[nodiscard]] const std::map<std::uint64_t, Cut>& cuts(std::uint32_t server) const {
    return nodes_[server].cuts;
  }
  [[nodiscard]] std::uint64_t version(std::uint32_t server) const {
    return nodes_[server].server.version();
  }
  [[nodiscard]] std::uint64_t decided() const {
    return std::accumulate(
        nodes_.begin(), nodes_.end(), std::uint64_t{0},
        [](std::uint64_t sum, const Node& n) { return sum + n.closer.updates(); });
  }

 private:
  struct Node {
    Server server{Consistency::kUnbounded, 0, kServers};
    Closer closer{false};
    std::vector<wire::PsDecision> said;
    std::array<std::size_t, kServers> sent{};  // to each
    std::vector<wire::PsPlaces> settled;       // of the revoked ones, as the ledger would know them
    std::map<std::uint64_t, std::vector<wire::PsPlaces>> at_marker;
    std::map<std::uint64_t, Cut> cuts;
  };

  static std::uint32_t home_of(Member m) { return m.worker.index % kServers; }
  void add_to_home(std::uint32_t home, const std::vector<Member>& workers) {
    closer::Effects effects;
    std::vector<Member> own;
    std::ranges::copy_if(workers, std::back_inserter(own),
                         [&](Member m) { return home_of(m) == home; });
    nodes_[home].closer.step(closer::WorkersAdded{own, 0}, effects);
  }
  void run(std::uint32_t at, const closer::Effects& effects) {
    for (const closer::Effect& effect : effects) {
      const auto* decide = std::get_if<closer::Decide>(&effect);
      if (decide == nullptr) continue;
      nodes_[at].said.push_back(decide->decision);
      hear(at, at, decide->decision);
    }
  }
  void hear(std::uint32_t from, std::uint32_t at, const wire::PsDecision& decision) {
    Node& node = nodes_[at];
    std::vector<ReplyTo> replies;
    std::ignore = node.server.apply(from, decision, replies);
    while (const auto due = node.server.due()) {
      ASSERT_FALSE(node.cuts.contains(due->number)) << "made twice";
      node.cuts[due->number] = {node.server.version(), rows(node), node.at_marker[due->number]};
      node.server.go_on(replies);
    }
    if (decision.cut != 0) order(at, decision.cut);
  }
  std::set<std::uint64_t> rows(Node& node) {
    std::set<std::uint64_t> rows;
    Store& store = *node.server.store();
    for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
      const RowTable& table = store.slice(slice, 0);
      for (std::uint32_t row = 0; row < table.rows(); ++row) {
        EXPECT_EQ(table.values(row)[0], 1) << "a push counted twice";
        rows.insert(table.key(row));
      }
    }
    return rows;
  }

  std::vector<Member> workers_;  // the attempts that live
  std::map<Member, std::uint64_t> numbers_;
  std::deque<Node> nodes_;
};

// The rows of all homes together.
std::set<std::uint64_t> rows_of_places(const Cluster& cluster, std::uint64_t cut) {
  std::set<std::uint64_t> rows;
  for (std::uint32_t s = 0; s < kServers; ++s) {
    for (const wire::PsPlaces& places : cluster.cuts(s).at(cut).places) {
      for (const wire::PsRange& range : places.applied) {
        for (std::uint64_t place = range.from; place < range.to; ++place) {
          rows.insert(Cluster::row_of({places.worker, places.attempt}, place + 1));
        }
      }
    }
  }
  return rows;
}

void expect_same_everywhere(const Cluster& cluster) {
  for (const auto& [number, cut] : cluster.cuts(0)) {
    for (std::uint32_t s = 0; s < kServers; ++s) {
      ASSERT_TRUE(cluster.cuts(s).contains(number)) << "cut " << number << " of s" << s;
      const Cluster::Cut& other = cluster.cuts(s).at(number);
      ASSERT_EQ(other.rows, cut.rows) << "cut " << number << " of s" << s;
      ASSERT_EQ(other.version, cut.version);
    }
    ASSERT_EQ(cut.version, cut.rows.size()) << "each push is an update";
    ASSERT_EQ(rows_of_places(cluster, number), cut.rows) << "cut " << number;
  }
  for (std::uint32_t s = 1; s < kServers; ++s) {
    ASSERT_EQ(cluster.cuts(s).size(), cluster.cuts(0).size());
  }
}

TEST(ParameterServerCut, DecisionsAfterAHomesMarkerWaitForTheMarkersOfTheOthers) {
  Cluster cluster;
  cluster.push(0);  // at s0
  cluster.push(1);  // at s1
  cluster.order(0, 1);
  cluster.push(0);
  EXPECT_EQ(cluster.version(0), 1U) << "one is on its way, one waits";
  while (cluster.deliver(0, 1)) {
  }
  EXPECT_EQ(cluster.version(1), 2U) << "the one after the marker waits here too";
  cluster.push(1);  // after its marker: it has heard of the cut
  cluster.deliver_all();
  EXPECT_EQ(cluster.cuts(2).at(1).version, 2U);
  EXPECT_THAT(cluster.cuts(2).at(1).rows, ElementsAre(Cluster::row_of(Cluster::member(0, 1), 1),
                                                      Cluster::row_of(Cluster::member(1, 1), 1)));
  for (std::uint32_t s = 0; s < kServers; ++s) EXPECT_EQ(cluster.version(s), 4U) << "of s" << s;
  expect_same_everywhere(cluster);
}

TEST(ParameterServerCut, AServerWithoutWorkersIsAskedToo) {
  Cluster cluster;
  cluster.push(0);
  cluster.order(0, 1);
  EXPECT_THAT(cluster.cuts(0), IsEmpty());
  cluster.deliver_all();
  EXPECT_EQ(cluster.cuts(0).size(), 1U);
  expect_same_everywhere(cluster);
}

TEST(ParameterServerCut, AWorkerThatIsRevokedAfterTheMarkerIsInItAsItWas) {
  Cluster cluster;
  cluster.push(0);
  cluster.order(0, 1);
  cluster.push(0);
  EXPECT_EQ(cluster.revoke(0).applied.at(0).to, 2U) << "its home has decided both";
  cluster.push(0);  // of the next attempt
  cluster.deliver_all();
  EXPECT_EQ(cluster.cuts(0).at(1).version, 1U);
  EXPECT_EQ(cluster.version(0), 3U);
  expect_same_everywhere(cluster);
}

TEST(ParameterServerCut, AnOvertakenCutIsMadeNowhere) {
  Cluster cluster;
  cluster.push(0);
  cluster.order(0, 1);
  cluster.push(0);
  cluster.order(1, 2);  // it has not heard of the first one
  cluster.deliver_all();
  for (std::uint32_t s = 0; s < kServers; ++s) {
    EXPECT_FALSE(cluster.cuts(s).contains(1)) << "of s" << s;
    EXPECT_EQ(cluster.cuts(s).at(2).version, 2U) << "of s" << s;
  }
  expect_same_everywhere(cluster);
}

TEST(ParameterServerCut, IsTheSamePushesOnAllServersWhateverComesWhen) {
  constexpr std::size_t kSeeds = all_or_some(400U, 60U);
  std::size_t made = 0;
  std::size_t overtaken = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    const std::uint32_t pace = 1 + below(6);  // how fast messages are
    Cluster cluster;
    std::uint64_t ordered = 0;
    for (int round = 0; round < 150; ++round) {
      cluster.push(below(kWorkers));
      for (std::uint32_t n = below(2 * pace); n > 0; --n) {
        const std::uint32_t from = below(kServers);
        const std::uint32_t to = below(kServers);
        if (from != to) cluster.deliver(from, to, below(4) == 0);
      }
      if (below(20) == 0) cluster.revoke(below(kWorkers));
      if (below(15) == 0) cluster.order(below(kServers), ++ordered);
      if (ordered > 0 && below(15) == 0) cluster.order(below(kServers), ordered);
    }
    cluster.order(below(kServers), ++ordered);
    cluster.deliver_all();
    ASSERT_TRUE(cluster.cuts(0).contains(ordered)) << "the last one is always made";
    expect_same_everywhere(cluster);
    for (std::uint32_t s = 0; s < kServers; ++s) ASSERT_EQ(cluster.version(s), cluster.decided());
    made += cluster.cuts(0).size();
    overtaken += ordered - cluster.cuts(0).size();
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(made, 5 * kSeeds / 2);
  EXPECT_GT(overtaken, kSeeds / 4) << "the schedules are too tame";
}

}  // namespace
}  // namespace antdt::ps::cut_test
