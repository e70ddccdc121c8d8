#include "cmd/antdt-jobd/checkpoint_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/fs.h"

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
    written.files = {{"model.pt", 7, "0123456789abcdef"}};
    return written;
  }
  Result<std::string> store(const wire::CheckpointWritten& written) {
    return checkpoints.store(written, kWriter, Lineage{1}, Generation{2}, "{}");
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
  EXPECT_THAT(checkpoints.list(),
              testing::ElementsAre("s0000000008-l1-g2-w0.1", "s0000000100-l1-g2-w0.1"));
}

TEST_F(CheckpointStoreTest, AFileCutShortIsRefusedAndNothingGetsAName) {
  wire::CheckpointWritten written = write(7);
  written.files[0].bytes = 8;
  const auto name = store(written);
  ASSERT_FALSE(name);
  EXPECT_THAT(name.error().message, testing::HasSubstr("should have 8 bytes and has 7"));
  EXPECT_TRUE(checkpoints.list().empty());
}

TEST_F(CheckpointStoreTest, ADirectoryOutsideTheRunIsRefused) {
  wire::CheckpointWritten written = write(7);
  written.directory = "/tmp";
  EXPECT_FALSE(store(written));
}

TEST_F(CheckpointStoreTest, AFileNameThatLeavesTheDirectoryIsRefused) {
  wire::CheckpointWritten written = write(7);
  written.files[0].name = "../model.pt";
  EXPECT_FALSE(store(written));
}

}  // namespace
}  // namespace antdt::jobd
