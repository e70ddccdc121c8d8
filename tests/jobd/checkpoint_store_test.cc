#include "jobd/disk/checkpoint_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/os/fs.h"

namespace antdt::jobd {
namespace {

namespace fs = std::filesystem;
const Member kWriter{WorkerId{'w', 0}, Attempt{1}};

class CheckpointStoreTest : public testing::Test {
 protected:
  wire::CheckpointWritten write(std::uint64_t step) {
    wire::CheckpointWritten written;
    written.step = Step{step};
    written.directory = dir.path() + "/checkpoints/.tmp-" + std::to_string(step);
    EXPECT_TRUE(make_directories(written.directory));
    EXPECT_TRUE(write_file_atomic(written.directory + "/model.pt", "weights"));
    written.files = {{"model.pt", 7, "06cc94573ff53c71"}};
    return written;
  }
  Result<std::string> store(const wire::CheckpointWritten& written, Lineage lineage = {1}) {
    ctl::job::StoreCheckpoint checkpoint;
    checkpoint.written = written;
    checkpoint.writer = kWriter;
    checkpoint.lineage = lineage;
    checkpoint.generation = Generation{2};
    checkpoint.ledger_image = std::string("ledger\0\xff", 8);
    checkpoint.accounts_image = "accounts";
    return checkpoints.store(checkpoint);
  }
  void cut(const std::string& name, const std::string& file) {
    const fs::path path = fs::path(dir.path()) / "checkpoints" / name / file;
    fs::resize_file(path, fs::file_size(path) - 1);
  }
  TempDir dir;
  CheckpointStore checkpoints{dir.path(), 2};
};

TEST_F(CheckpointStoreTest, IsRenamedIntoPlaceWithItsLedgerAndManifest) {
  const auto name = store(write(7));
  ASSERT_TRUE(name) << name.error().message;
  EXPECT_EQ(*name, "s0000000007-l1-g2-w0.1");
  EXPECT_TRUE(fs::exists(dir.path() + "/checkpoints/" + *name + "/ledger.json"));
  EXPECT_TRUE(fs::exists(dir.path() + "/checkpoints/" + *name + "/MANIFEST.json"));
}

TEST_F(CheckpointStoreTest, KeepsTheNewest) {
  for (const std::uint64_t step : {7U, 8U, 100U}) ASSERT_TRUE(store(write(step)));
  EXPECT_THAT(checkpoints.list().value(),
              testing::ElementsAre("s0000000008-l1-g2-w0.1", "s0000000100-l1-g2-w0.1"));
}

TEST_F(CheckpointStoreTest, UnfinishedFilesOfEarlierWritersAreRemovedWithTheNextCheckpoint) {
  const std::string dead = write(6).directory;
  const std::string at_work = write(9).directory;
  ASSERT_TRUE(store(write(8)));
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(at_work));
}

TEST_F(CheckpointStoreTest, SaysWhereItLiesAndWhatOneTakes) {
  EXPECT_THAT(checkpoints.about_room(), testing::StartsWith(dir.path() + "/checkpoints has "));
  ASSERT_TRUE(store(write(7)));
  EXPECT_THAT(checkpoints.about_room(),
              testing::HasSubstr("MiB free, the newest checkpoint takes 0"));
}

TEST_F(CheckpointStoreTest, AFileCutShortIsRefusedAndNothingGetsAName) {
  wire::CheckpointWritten written = write(7);
  written.files[0].bytes = 8;
  const auto name = store(written);
  ASSERT_FALSE(name);
  EXPECT_THAT(name.error().message, testing::HasSubstr("should have 8 bytes and has 7"));
  EXPECT_TRUE(checkpoints.list().value().empty());
}

TEST_F(CheckpointStoreTest, CheckpointsThatCannotBeListedAreNotNone) {
  std::filesystem::remove_all(dir / "checkpoints");
  ASSERT_TRUE(write_file_atomic(dir / "checkpoints", ""));
  EXPECT_FALSE(checkpoints.list());
  const auto newest = checkpoints.newest();
  ASSERT_FALSE(newest);
  EXPECT_THAT(newest.error().message, testing::HasSubstr("cannot be listed"));
}

TEST_F(CheckpointStoreTest, ADirectoryOutsideTheRunIsRefused) {
  wire::CheckpointWritten written = write(7);
  written.directory = "/tmp";
  EXPECT_FALSE(store(written));
}

TEST_F(CheckpointStoreTest, OnlyTheDirectoryOfAnUnfinishedCheckpointIsTaken) {
  ASSERT_TRUE(write_file_atomic(dir / "model.pt", "weights"));
  for (const char* name : {"..", ".", "", "x/..", "x"}) {
    wire::CheckpointWritten written = write(7);
    written.directory = dir / (std::string("checkpoints/") + name);
    EXPECT_FALSE(store(written)) << name;
  }
  ASSERT_TRUE(store(write(7)));
  wire::CheckpointWritten again = write(7);
  again.directory = dir / "checkpoints/..";
  EXPECT_TRUE(store(again)) << "it is there already";
  EXPECT_TRUE(fs::exists(dir / "model.pt")) << "only what is unfinished is removed";
}

TEST_F(CheckpointStoreTest, AFileNameThatLeavesTheDirectoryIsRefused) {
  for (const char* name : {"../model.pt", "..", ".", ""}) {
    wire::CheckpointWritten written = write(7);
    written.files[0].name = name;
    EXPECT_FALSE(store(written)) << name;
  }
}

TEST_F(CheckpointStoreTest, TheNewestComesBackWithItsLedger) {
  ASSERT_TRUE(store(write(7)));
  ASSERT_TRUE(store(write(8)));
  const auto newest = checkpoints.newest().value();
  EXPECT_THAT(newest.problems, testing::IsEmpty());
  EXPECT_EQ(newest.found.directory, dir.path() + "/checkpoints/s0000000008-l1-g2-w0.1");
  EXPECT_EQ(newest.found.step, Step{8});
  EXPECT_EQ(newest.found.ledger_image, std::string("ledger\0\xff", 8));
  EXPECT_EQ(newest.found.accounts_image, "accounts");
}

TEST_F(CheckpointStoreTest, ALaterLineageIsNewerThanAHigherStep) {
  ASSERT_TRUE(store(write(100), Lineage{1}));
  ASSERT_TRUE(store(write(8), Lineage{2}));
  EXPECT_EQ(checkpoints.newest().value().found.step, Step{8});
}

TEST_F(CheckpointStoreTest, OneThatWasCutShortIsPassedOverAndSaid) {
  ASSERT_TRUE(store(write(7)));
  const auto name = store(write(8));
  cut(*name, "model.pt");
  const auto newest = checkpoints.newest().value();
  EXPECT_EQ(newest.found.step, Step{7});
  ASSERT_EQ(newest.problems.size(), 1U);
  EXPECT_THAT(newest.problems[0], testing::HasSubstr("model.pt has 6 bytes, not 7"));
}

TEST_F(CheckpointStoreTest, OneThatLacksAFileIsPassedOverAndSaid) {
  ASSERT_TRUE(store(write(7)));
  const auto name = store(write(8));
  fs::remove(dir.path() + "/checkpoints/" + *name + "/model.pt");
  const auto newest = checkpoints.newest().value();
  EXPECT_EQ(newest.found.step, Step{7});
  ASSERT_EQ(newest.problems.size(), 1U);
  EXPECT_THAT(newest.problems[0], testing::HasSubstr("model.pt is missing"));
}

// A directory in the file's place is there, and reading it fails.
TEST_F(CheckpointStoreTest, OneWithAFileThatIsThereAndCannotBeReadIsNotDamaged) {
  ASSERT_TRUE(store(write(7)));
  for (const std::string file : {"model.pt", "ledger.json", "MANIFEST.json"}) {
    const auto name = store(write(8));
    const std::string path = dir.path() + "/checkpoints/" + *name;
    fs::remove(path + "/" + file);
    fs::create_directory(path + "/" + file);
    const auto newest = checkpoints.newest().value();
    EXPECT_EQ(newest.found.step, Step{7});
    EXPECT_THAT(newest.problems, testing::IsEmpty());
    ASSERT_EQ(newest.unreadable.size(), 1U);
    EXPECT_THAT(newest.unreadable[0],
                testing::AllOf(testing::StartsWith("checkpoint " + path),
                               testing::HasSubstr("cannot be read"), testing::HasSubstr(file)));
    fs::remove_all(path);
  }
}

TEST_F(CheckpointStoreTest, OneWithOtherBytesThanItsManifestSaysIsPassedOver) {
  ASSERT_TRUE(store(write(7)));
  const auto name = store(write(8));
  ASSERT_TRUE(write_file_atomic(dir.path() + "/checkpoints/" + *name + "/model.pt", "Weights"));
  const auto newest = checkpoints.newest().value();
  EXPECT_EQ(newest.found.step, Step{7});
  ASSERT_EQ(newest.problems.size(), 1U);
  EXPECT_THAT(newest.problems[0], testing::HasSubstr("does not have the checksum"));
}

TEST_F(CheckpointStoreTest, OneWithoutItsManifestIsPassedOverAndSaid) {
  ASSERT_TRUE(store(write(7)));
  const auto name = store(write(8));
  fs::remove(dir.path() + "/checkpoints/" + *name + "/MANIFEST.json");
  const auto newest = checkpoints.newest().value();
  EXPECT_EQ(newest.found.step, Step{7});
  ASSERT_EQ(newest.problems.size(), 1U);
  EXPECT_THAT(newest.problems[0], testing::HasSubstr(*name));
}

TEST_F(CheckpointStoreTest, OneWhoseManifestIsNoManifestIsPassedOver) {
  ASSERT_TRUE(store(write(7)));
  const auto name = store(write(8));
  for (const char* text : {"", "{}", "[]", R"({"files":7})", R"({"files":[{"name":3}]})",
                           R"({"files":[{"name":"model.pt","bytes":7,"xxh3":1}]})"}) {
    ASSERT_TRUE(write_file_atomic(dir.path() + "/checkpoints/" + *name + "/MANIFEST.json", text));
    const auto newest = checkpoints.newest().value();
    EXPECT_EQ(newest.found.step, Step{7}) << text;
    EXPECT_EQ(newest.problems.size(), 1U) << text;
  }
}

TEST_F(CheckpointStoreTest, WithoutACheckpointThereIsNothingToGoOnFrom) {
  EXPECT_EQ(checkpoints.newest().value().found.directory, "");
  const auto name = store(write(8));
  cut(*name, "ledger.json");
  EXPECT_EQ(checkpoints.newest().value().found.directory, "");
}

}  // namespace
}  // namespace antdt::jobd
