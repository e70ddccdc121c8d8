// Tests which of a run's checkpoints are kept, and that a repeated checkpoint changes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/os/fs.h"
#include "jobd/disk/checkpoint_check.h"
#include "jobd/disk/checkpoint_store.h"

namespace antdt::jobd {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class CheckpointPruningTest : public testing::Test {
 protected:
  struct Writer {
    std::uint64_t lineage = 1;
    std::uint64_t generation = 2;
    std::uint32_t attempt = 1;
  };
  // The files of a member, for the job daemon to complete.
  ctl::job::StoreCheckpoint written(std::uint64_t step, const std::string& weights, Writer by) {
    ctl::job::StoreCheckpoint checkpoint;
    checkpoint.written.step = Step{step};
    checkpoint.written.directory =
        run_ / fmt::format("checkpoints/.tmp-{}-g{}-w0.{}", step, by.generation, by.attempt);
    EXPECT_TRUE(make_directories(checkpoint.written.directory));
    EXPECT_TRUE(write_file_atomic(checkpoint.written.directory + "/model.pt", weights));
    checkpoint.written.files = {sum_file(checkpoint.written.directory, "model.pt").value()};
    checkpoint.writer = {WorkerId{'w', 0}, Attempt{by.attempt}};
    checkpoint.lineage = Lineage{by.lineage};
    checkpoint.generation = Generation{by.generation};
    return checkpoint;
  }
  std::string stored(std::uint64_t step) { return stored(step, Writer{}); }
  std::string stored(std::uint64_t step, Writer by) {
    const auto name = store_.store(written(step, "weights", by));
    EXPECT_TRUE(name) << name.error().message;
    return name.value_or("");
  }
  std::string weights_of(const std::string& name) {
    return read_file(run_ / ("checkpoints/" + name + "/model.pt")).value_or("");
  }
  bool exists(const std::string& path) const { return fs::exists(path); }

  TempDir run_;
  CheckpointStore store_{run_.path(), 2};
};

TEST_F(CheckpointPruningTest, ACheckpointReportedTwiceIsStoredOnceAndUnchanged) {
  const auto first = written(7, "weights", {});
  ASSERT_TRUE(store_.store(first));
  EXPECT_EQ(store_.store(first).value_or(""), "s0000000007-l1-g2-w0.1") << "its answer was lost";
  EXPECT_THAT(store_.list().value(), ElementsAre("s0000000007-l1-g2-w0.1"));
  // The same member made the step again, because it had not received the answer.
  const auto again = written(7, "other weights", {});
  ASSERT_TRUE(store_.store(again));
  EXPECT_EQ(weights_of("s0000000007-l1-g2-w0.1"), "weights");
  EXPECT_FALSE(exists(again.written.directory)) << "nobody will say anything of it any more";
}

TEST_F(CheckpointPruningTest, AZombiesCheckpointTakesNobodysPlace) {
  stored(7, {1, 2, 1});
  stored(7, {1, 3, 2});
  EXPECT_THAT(store_.list().value(),
              ElementsAre("s0000000007-l1-g2-w0.1", "s0000000007-l1-g3-w0.2"));
}

TEST_F(CheckpointPruningTest, CheckpointsOfAnEarlierLineageAreRemovedFirst) {
  stored(100, {1});
  stored(200, {1});
  stored(50, {2});
  EXPECT_THAT(store_.list().value(),
              ElementsAre("s0000000200-l1-g2-w0.1", "s0000000050-l2-g2-w0.1"));
  stored(60, {2});
  EXPECT_THAT(store_.list().value(),
              ElementsAre("s0000000050-l2-g2-w0.1", "s0000000060-l2-g2-w0.1"));
}

TEST_F(CheckpointPruningTest, CheckpointsOfAbandonedTrainingAreRemovedEvenWithHigherNumbers) {
  const auto given_up = written(90, "weights", {1, 2, 1});
  const auto under_way = written(60, "weights", {2, 5, 2});
  stored(50, {2, 5, 2});
  EXPECT_FALSE(exists(given_up.written.directory));
  EXPECT_TRUE(exists(under_way.written.directory));
}

// With parameter servers a directory has the number of the cut, which is far below that of the
// step.
TEST_F(CheckpointPruningTest, FilesThatServersAreWritingStayHoweverManyStepsPass) {
  auto fifth = written(1000, "weights", {});
  const std::string of_fifth = run_ / "checkpoints/.tmp-5-g2";
  fs::rename(fifth.written.directory, of_fifth);
  fifth.written.directory = of_fifth;
  const std::string dead = run_ / "checkpoints/.tmp-4-g1";
  const std::string next = run_ / "checkpoints/.tmp-6-g2";
  for (const std::string& directory : {dead, next}) ASSERT_TRUE(make_directories(directory));
  ASSERT_TRUE(store_.store(fifth));
  EXPECT_FALSE(exists(dead));
  EXPECT_TRUE(exists(next));
}

TEST_F(CheckpointPruningTest, OneThatFailsRemovesNothing) {
  stored(7);
  stored(8);
  auto damaged = written(9, "weights", {});
  damaged.written.files[0].bytes += 1;
  EXPECT_FALSE(store_.store(damaged));
  EXPECT_THAT(store_.list().value(),
              ElementsAre("s0000000007-l1-g2-w0.1", "s0000000008-l1-g2-w0.1"));
}

TEST_F(CheckpointPruningTest, WhatFailedIsRemovedThoughNothingIsStored) {
  const auto older = written(6, "weights", {}).written.directory;
  const auto failed = written(7, "weights", {}).written.directory;
  const auto under_way = written(8, "weights", {}).written.directory;
  store_.remove_unfinished({2, 6});
  EXPECT_FALSE(exists(older));
  EXPECT_TRUE(exists(failed));
  store_.discard(failed);
  EXPECT_FALSE(exists(failed));
  EXPECT_TRUE(exists(under_way));
  stored(9);
  for (const std::string& other : {store_.list().value().at(0), std::string("..")}) {
    store_.discard(run_ / ("checkpoints/" + other));
  }
  EXPECT_THAT(store_.list().value(), ElementsAre("s0000000009-l1-g2-w0.1"));
}

TEST_F(CheckpointPruningTest, AnOldOneWhoseRemovalWasInterruptedIsRemoved) {
  for (const std::uint64_t step : {7U, 8U}) stored(step);
  fs::remove(run_ / "checkpoints/s0000000007-l1-g2-w0.1/MANIFEST.json");
  stored(9);
  EXPECT_TRUE(exists(run_ / "checkpoints/s0000000008-l1-g2-w0.1"));
  EXPECT_FALSE(exists(run_ / "checkpoints/s0000000007-l1-g2-w0.1"));
}

TEST_F(CheckpointPruningTest, WhatIsNoCheckpointIsLeftAlone) {
  const std::string notes = run_ / "checkpoints/notes";
  ASSERT_TRUE(make_directories(notes));
  for (const std::uint64_t step : {7U, 8U, 9U}) stored(step);
  EXPECT_TRUE(exists(notes));
  EXPECT_THAT(store_.list().value(),
              ElementsAre("s0000000008-l1-g2-w0.1", "s0000000009-l1-g2-w0.1"));
}

TEST_F(CheckpointPruningTest, WithTheNewestDamagedTheRunGoesOnFromTheOneThatWasKeptBesideIt) {
  for (const std::uint64_t step : {7U, 8U, 9U}) stored(step);
  ASSERT_TRUE(write_file_atomic(run_ / "checkpoints/s0000000009-l1-g2-w0.1/model.pt", "Weights"));
  const auto newest = store_.newest().value();
  EXPECT_EQ(newest.found.step, Step{8});
  EXPECT_THAT(newest.problems, testing::SizeIs(1));
  // Both are damaged, so there is nothing left to go on from; each is reported.
  ASSERT_TRUE(write_file_atomic(run_ / "checkpoints/s0000000008-l1-g2-w0.1/ledger.json", "{}"));
  const auto none = store_.newest().value();
  EXPECT_TRUE(none.none());
  EXPECT_THAT(none.problems, testing::SizeIs(2));
}

}  // namespace
}  // namespace antdt::jobd
