// Tests of checkpoints that are written beside the steps: they hold the state as it was.
#include "trainer/loop/state/checkpoint_writer.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <future>
#include <string>
#include <thread>

#include "tests/trainer/loop/testing.h"

namespace antdt::trainer {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kFloats = 300'000;  // more than a chunk

class CheckpointWriterTest : public ::testing::Test {
 protected:
  CheckpointWriterTest() {
    auto connected = client::Client::connect(job.environment(0), std::chrono::seconds(60));
    EXPECT_TRUE(connected);
    client = std::move(*connected);
    be_patient(std::chrono::seconds(60));
    std::iota(engine.counts_.begin(), engine.counts_.end(), 0.0F);
  }
  // Sets the patience with a disk that hangs.
  void be_patient(Duration patience) {
    writer = std::make_unique<CheckpointWriter>(*client, patience);
  }
  std::future<wire::CheckpointWritten> begin(std::uint64_t step) {
    auto promise = std::make_shared<std::promise<wire::CheckpointWritten>>();
    wire::CheckpointWritten about;
    about.number = step;
    about.step = Step{step};
    writer->begin(engine, about, [promise](wire::CheckpointWritten written) {
      promise->set_value(std::move(written));
    });
    return promise->get_future();
  }
  [[nodiscard]] std::string directory(std::uint64_t step) const {
    return fmt::format("{}/checkpoints/.tmp-{}-g0-w0.1", job.run_dir(), step);
  }
  // A disk that does not answer: opening this file for writing waits for a reader.
  void stall(std::uint64_t step) const {
    ASSERT_TRUE(make_directories(directory(step), 0700));
    ASSERT_EQ(mkfifo((directory(step) + "/tally").c_str(), 0600), 0);
  }

  FakeJob job{1, {{wire::PhaseKind::kTrain, 10}}, even_plan(1, 10)};
  std::unique_ptr<client::Client> client;
  Tally engine{kFloats, {}, 0};
  std::unique_ptr<CheckpointWriter> writer;
};

TEST_F(CheckpointWriterTest, WritesTheStateAsItWasThoughStepsGoOn) {
  const std::vector<float> then = engine.counts_;
  auto written = begin(7);
  std::fill(engine.counts_.begin(), engine.counts_.end(), -1.0F);
  const wire::CheckpointWritten said = written.get();
  EXPECT_EQ(said.error, "");
  EXPECT_EQ(said.number, 7U);
  EXPECT_EQ(said.directory, directory(7));
  ASSERT_EQ(said.files.size(), 2U);
  EXPECT_EQ(said.files[0].bytes, kFloats * sizeof(float));
  ASSERT_TRUE(write_manifest(said.directory, Step{7}, said.files));
  const auto loaded = load_state(engine, said.directory);
  ASSERT_TRUE(loaded) << loaded.error().message << ": sizes and checksums are what it said";
  EXPECT_EQ(*loaded, Step{7});
  EXPECT_EQ(engine.counts_, then);
}

TEST_F(CheckpointWriterTest, AHungWriteCostsTheCheckpointAndNamesTheDisk) {
  be_patient(std::chrono::seconds(2));
  stall(3);
  const wire::CheckpointWritten said = begin(3).get();
  EXPECT_THAT(said.error, HasSubstr("writing the checkpoint " + directory(3) + " stands still at"));
  EXPECT_THAT(said.error, EndsWith("look at the disk of host-a"));
  EXPECT_THAT(said.files, IsEmpty());
  // The process that was killed may take a moment to end.
  std::string next = begin(4).get().error;
  for (std::uint64_t step = 5; step < 1000 && next.find("does not end") != next.npos; ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    next = begin(step).get().error;
  }
  EXPECT_EQ(next, "") << "the next one is written where the disk answers";
}

TEST_F(CheckpointWriterTest, AFailedWriteNamesTheFileAndLeavesNothing) {
  ASSERT_TRUE(make_directories(directory(5) + "/tally", 0700)) << "where the file is to be";
  const wire::CheckpointWritten said = begin(5).get();
  EXPECT_THAT(said.error, HasSubstr(directory(5) + "/tally cannot be written"));
  EXPECT_THAT(said.error, HasSubstr("directory"));
  EXPECT_FALSE(std::filesystem::exists(directory(5) + "/step"));
}

TEST_F(CheckpointWriterTest, ALeavingWriterAbandonsTheCheckpointAndSaysSo) {
  stall(3);
  auto written = begin(3);
  EXPECT_TRUE(writer->busy());
  writer->give_up("its writer leaves the job");
  EXPECT_FALSE(writer->busy());
  EXPECT_EQ(written.get().error, "it was given up: its writer leaves the job");
}

}  // namespace
}  // namespace antdt::trainer
