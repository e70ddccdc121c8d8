// Checkpoints of servers on real sockets, taken while workers train.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <numeric>
#include <set>
#include <thread>

#include "core/os/fs.h"
#include "tests/trainer/manifest.h"
#include "tests/trainer/may_fork.h"
#include "tests/trainer/ps_link/testing.h"

namespace antdt::ps {
namespace {

class PsCutTest : public PsLinkTest {
 protected:
  PsCutTest() { group.workers.push_back(w(kWatcher)); }
  void SetUp() override {
    if (!kMayFork) GTEST_SKIP() << "a child writes the checkpoint";
  }

  // Both servers' answers to the order of a checkpoint.
  std::vector<wire::PsSaved> cut(ServerThread& first, ServerThread& second, std::uint64_t number,
                                 const std::string& to) {
    auto one = first.cut({number, to});
    auto other = second.cut({number, to});
    EXPECT_EQ(one.wait_for(kGiveUp), std::future_status::ready);
    EXPECT_EQ(other.wait_for(kGiveUp), std::future_status::ready);
    return complete({one.get(), other.get()}, to);
  }
  // Completes the checkpoint as the job daemon does.
  std::vector<wire::PsSaved> complete(std::vector<wire::PsSaved> saved, const std::string& to) {
    std::vector<wire::CheckpointFile> files;
    for (const wire::PsSaved& of : saved) {
      files.insert(files.end(), of.files.begin(), of.files.end());
    }
    if (files.empty()) return saved;
    const std::string path = to.starts_with('/') ? to : group.root + "/" + to;
    EXPECT_TRUE(write_manifest(path, Step{saved[0].version}, files));
    return saved;
  }
  // The values of all rows after `clock` steps, as a worker sees them that pushes nothing.
  std::set<float> values(std::uint64_t clock) {
    auto own = link(kWatcher);
    EXPECT_TRUE(own) << own.error().message;
    EXPECT_TRUE((*own)->idle());
    const auto pulled = (*own)->pull({{0, keys}}, clock);
    EXPECT_TRUE(pulled) << pulled.error().message;
    return {pulled->values.at(0).begin(), pulled->values.at(0).end()};
  }
  // Each step adds one for each worker that trains.
  static std::set<float> after(std::uint64_t steps) {
    return {static_cast<float>(steps * kWorkers)};
  }
  void train_all(std::uint64_t first_step = 0) {
    std::vector<std::thread> workers;
    for (std::uint32_t i = 0; i < kWorkers; ++i) {
      workers.emplace_back([&, i] {
        const auto counted = train(i, keys, first_step);
        EXPECT_TRUE(counted) << counted.error().message;
      });
    }
    for (std::thread& worker : workers) worker.join();
  }
  static constexpr std::uint32_t kWatcher = kWorkers;
  std::vector<std::uint64_t> keys = [] {
    std::vector<std::uint64_t> some(2000);
    std::iota(some.begin(), some.end(), 1);
    return some;
  }();
};

TEST_P(PsCutTest, ACheckpointIsTheSameStepOnEveryServerAndAGroupGoesOnFromIt) {
  std::uint64_t version = 0;
  group.root = directory.path();
  {
    ServerThread first(group, 0);
    ServerThread second(group, 1);
    ASSERT_TRUE(link(0));
    std::thread training([&] { train_all(); });
    values(kSteps / 4);
    const auto saved = cut(first, second, 1, "checkpoints/a");
    training.join();
    for (const auto& s : saved) {
      ASSERT_EQ(s.error, "");
      EXPECT_EQ(s.files.size(), kSlices / 2);
    }
    version = saved[0].version;
    EXPECT_EQ(saved[1].version, version);
    EXPECT_GE(version, kSteps / 4);
    // Every worker has one place a step, and the watcher has none.
    ASSERT_EQ(saved[0].places.size(), kWorkers + 1U);
    for (std::uint32_t i = 0; i < kWorkers; ++i) {
      EXPECT_EQ(saved[0].places[i].worker, w(i).worker);
      ASSERT_EQ(saved[0].places[i].applied.size(), 1U);
      EXPECT_EQ(saved[0].places[i].applied[0].to, version);
    }
    EXPECT_THAT(saved[0].places[kWatcher].applied, testing::IsEmpty());
    EXPECT_THAT(saved[1].places, testing::IsEmpty()) << "it is nobody's home";
    EXPECT_EQ(values(kSteps), after(kSteps)) << "training went on meanwhile";
    const auto again = cut(first, second, 1, "checkpoints/a");
    EXPECT_EQ(again[0].version, version) << "said again it is answered again";
    EXPECT_EQ(again[0].places[0].applied[0].to, version) << "as it was then";
    EXPECT_EQ(again[1].version, version);
  }
  group.generation = group.generation.next();
  group.restore = "checkpoints/a";
  group.version = version;
  const ServerThread first(group, 0);
  const ServerThread second(group, 1);
  EXPECT_EQ(values(version), after(version));
  train_all(version);
  EXPECT_EQ(values(version + kSteps), after(version + kSteps));
}

TEST_P(PsCutTest, EveryoneWhoAsksForACheckpointIsAnswered) {
  ServerThread first(group, 0);
  ServerThread second(group, 1);
  ASSERT_TRUE(link(0));
  auto waits = first.cut({3, directory / "a"});
  auto waits_too = first.cut({3, directory / "a"});
  const auto saved = cut(first, second, 3, directory / "a");
  EXPECT_EQ(waits.get().error, "");
  EXPECT_EQ(waits_too.get().files.size(), kSlices / 2);
  EXPECT_EQ(saved[0].error, "");
  EXPECT_THAT(cut(first, second, 2, directory / "b")[0].error,
              testing::HasSubstr("a later checkpoint"));
}

TEST_P(PsCutTest, ACheckpointIsMadeThoughTheOneBeforeItIsStillBeingWritten) {
  ServerThread first(group, 0);
  ServerThread second(group, 1);
  ASSERT_TRUE(link(0));
  std::vector<std::future<wire::PsSaved>> later;
  for (ServerThread* server : {&first, &second}) {
    auto saved = std::make_shared<std::promise<wire::PsSaved>>();
    later.push_back(saved->get_future());
    server->post([this, saved](ServerLoop& s) {
      s.cut({1, directory / "given-up"}, [](const wire::PsSaved&) {});
      s.cut({2, directory / "b"}, [saved](const wire::PsSaved& made) { saved->set_value(made); });
    });
  }
  for (auto& answer : later) {
    ASSERT_EQ(answer.wait_for(kGiveUp), std::future_status::ready);
    const wire::PsSaved made = answer.get();
    EXPECT_EQ(made.error, "") << "a job that is stopped would have no newer one";
    EXPECT_EQ(made.files.size(), kSlices / 2);
  }
}

TEST_P(PsCutTest, AnUnwritableOrUnreadableCheckpointIsReportedAndTrainingGoesOn) {
  ServerThread first(group, 0);
  ServerThread second(group, 1);
  const auto early = cut(first, second, 1, directory.path());
  EXPECT_THAT(early[0].error, testing::HasSubstr("no worker has opened a table"));
  ASSERT_TRUE(link(0));
  ASSERT_TRUE(write_file_atomic(directory / "file", "in the way"));
  const auto saved = cut(first, second, 2, directory / "file/below");
  EXPECT_THAT(saved[0].error, testing::HasSubstr("file"));
  EXPECT_THAT(saved[1].error, testing::HasSubstr("file"));
  std::thread training([&] { train_all(); });
  EXPECT_EQ(values(kSteps), after(kSteps));
  training.join();

  group.generation = group.generation.next();
  group.restore = directory / "not-there";
  for (std::string& socket : group.sockets) socket += "b";
  const ServerThread third(group, 0);
  const ServerThread fourth(group, 1);
  const auto refused = link(0);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("not-there/MANIFEST.json"));
}

TEST_P(PsCutTest, ADamagedSliceIsRefusedByName) {
  group.root = directory.path();
  {
    ServerThread first(group, 0);
    ServerThread second(group, 1);
    ASSERT_TRUE(link(0));
    std::thread training([&] { train_all(); });
    EXPECT_EQ(values(kSteps), after(kSteps));  // a step waits for the watcher, too
    training.join();
    EXPECT_EQ(cut(first, second, 1, "c1")[0].error, "");
  }
  const std::string path = directory / "c1/slice-00.rows";
  auto bytes = read_file(path);
  ASSERT_TRUE(bytes && bytes->size() > 100);
  bytes->at(100) ^= 1;
  ASSERT_TRUE(write_file_atomic(path, *bytes));
  group.generation = group.generation.next();
  group.restore = "c1";
  group.name = "s0 on b";
  const ServerThread first(group, 0);
  const ServerThread second(group, 1);
  const auto refused = link(0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kCorrupt);
  EXPECT_THAT(refused.error().message, testing::StartsWith("s0 on b: " + directory.path()));
  EXPECT_THAT(refused.error().message,
              testing::HasSubstr("slice-00.rows does not have the checksum of MANIFEST.json"));
}

INSTANTIATE_TEST_SUITE_P(Barrier, PsCutTest, testing::Values(Consistency::kBarrier));

// Each push adds one to every row and has one place, so after any number of pushes rows, version
// and places must give the same number.
class PsFreeCutTest : public PsCutTest {};

TEST_P(PsFreeCutTest, ACheckpointHoldsTheSamePushesOnEveryServerAndItsPlacesAreTheirs) {
  group.root = directory.path();
  wire::PsSaved last;
  const auto expect_cut = [&](const std::vector<wire::PsSaved>& saved) {
    std::uint64_t places = 0;
    for (const auto& s : saved) {
      ASSERT_EQ(s.error, "");
      for (const auto& p : s.places) places += p.applied.empty() ? 0 : p.applied.back().to;
    }
    EXPECT_EQ(saved[0].version, saved[1].version);
    EXPECT_EQ(saved[0].version, places);
    last = saved[0];
  };
  {
    ServerThread first(group, 0);
    ServerThread second(group, 1);
    ASSERT_TRUE(link(0));
    std::thread training([&] { train_all(); });
    for (std::uint64_t n = 1; n <= 5; ++n) {
      expect_cut(cut(first, second, n, fmt::format("c{}", n)));
    }
    training.join();
    // Only the home of server 1 gets the order first: the other server hears of it from there.
    auto told = second.cut({6, "c6"});
    ASSERT_EQ(told.wait_for(kGiveUp), std::future_status::ready);
    expect_cut(complete({told.get(), first.cut({6, "c6"}).get()}, "c6"));
    EXPECT_EQ(last.version, kSteps * kWorkers);
    auto own = link(kWatcher);
    ASSERT_TRUE(own);
    EXPECT_EQ((*own)->settle().value_or(0), kSteps * kWorkers);
    EXPECT_EQ(values(0), after(kSteps)) << "and is applied everywhere then";
  }
  group.generation = group.generation.next();
  group.restore = "c6";
  group.version = last.version;
  const ServerThread first(group, 0);
  const ServerThread second(group, 1);
  EXPECT_EQ(values(0), after(kSteps));
  auto own = link(kWatcher);
  ASSERT_TRUE(own);
  EXPECT_EQ((*own)->settle().value_or(0), last.version);
  train_all();
  EXPECT_EQ((*own)->settle().value_or(0), 2 * kSteps * kWorkers);
  EXPECT_EQ(values(0), after(2 * kSteps));
}

TEST_P(PsFreeCutTest, ACheckpointInTheMiddleOfTrainingIsWhatItsVersionSays) {
  group.root = directory.path();
  wire::PsSaved saved;
  {
    ServerThread first(group, 0);
    ServerThread second(group, 1);
    ASSERT_TRUE(link(0));
    std::thread training([&] { train_all(); });
    const auto far = [&] { return first.ask([](ServerLoop& s) { return s.version(); }); };
    while (far() < kSteps) std::this_thread::yield();
    saved = cut(first, second, 1, "c1").at(0);
    training.join();
  }
  EXPECT_GE(saved.version, kSteps);
  group.generation = group.generation.next();
  group.restore = "c1";
  group.version = saved.version;
  const ServerThread first(group, 0);
  const ServerThread second(group, 1);
  EXPECT_THAT(values(0), testing::ElementsAre(static_cast<float>(saved.version)));
}

// The second server hears of another checkpoint before it hears of the first: no server waits for a
// checkpoint that will never be.
TEST_P(PsFreeCutTest, AnOvertakenCheckpointIsReportedToWhoeverAskedForIt) {
  group.root = directory.path();
  ServerThread first(group, 0);
  ServerThread second(group, 1);
  ASSERT_TRUE(link(0));
  std::promise<void> busy;
  std::promise<void> gate;
  std::promise<wire::PsSaved> saved;
  second.post([&](ServerLoop& server) {
    busy.set_value();
    gate.get_future().wait();
    server.cut({2, "c2"}, [&](const wire::PsSaved& s) { saved.set_value(s); });
  });
  busy.get_future().wait();
  auto overtaken = first.cut({1, "c1"});
  ASSERT_EQ(first.ask([](ServerLoop& server) { return server.version(); }), 0U) << "it is ordered";
  gate.set_value();
  auto later = saved.get_future();
  ASSERT_EQ(later.wait_for(kGiveUp), std::future_status::ready);
  EXPECT_EQ(later.get().error, "");
  ASSERT_EQ(overtaken.wait_for(kGiveUp), std::future_status::ready);
  EXPECT_EQ(overtaken.get().error, "a later checkpoint was ordered before it");
  EXPECT_EQ(first.cut({2, "c2"}).get().error, "");
}

INSTANTIATE_TEST_SUITE_P(WithoutABarrier, PsFreeCutTest,
                         testing::Values(Consistency::kBounded, Consistency::kUnbounded));

}  // namespace
}  // namespace antdt::ps
