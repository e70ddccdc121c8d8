// What is made aside and then put in place, and signals meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "core/os/fs.h"
#include "launcher/model/model_aside.h"

namespace antdt::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class AsideDirectoryTest : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir.path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
  std::string refusal(const std::string& place) {
    const auto made = AsideDirectory::make_for(place);
    EXPECT_FALSE(made);
    return made ? "" : made.error().message;
  }
  TempDir dir;
};

TEST_F(AsideDirectoryTest, HasItsPlaceOnlyWhenItIsPutThere) {
  {
    auto aside = AsideDirectory::make_for(dir / "new/model/");
    ASSERT_TRUE(aside) << aside.error().message;
    EXPECT_EQ(aside->place(), dir / "new/model");
    EXPECT_FALSE(fs::exists(aside->place()));
    ASSERT_TRUE(write_file_atomic(aside->path() + "/a", "x"));
    ASSERT_TRUE(aside->put_in_place());
  }
  EXPECT_EQ(*read_file(dir / "new/model/a"), "x");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir / "new"), fs::directory_iterator()), 1);
}

TEST_F(AsideDirectoryTest, AnAbandonedDirectoryLeavesNothing) {
  {
    auto aside = AsideDirectory::make_for(dir / "model");
    ASSERT_TRUE(aside);
    ASSERT_TRUE(write_file_atomic(aside->path() + "/a", "x"));
  }
  EXPECT_THAT(left(), testing::IsEmpty());
}

TEST_F(AsideDirectoryTest, AnEmptyDirectoryAndALinkToOneAreTaken) {
  ASSERT_TRUE(make_directories(dir / "empty"));
  fs::create_symlink("empty", dir / "link");
  auto aside = AsideDirectory::make_for(dir / "link");
  ASSERT_TRUE(aside) << aside.error().message;
  ASSERT_TRUE(write_file_atomic(aside->path() + "/a", "x"));
  ASSERT_TRUE(aside->put_in_place());
  EXPECT_EQ(*read_file(dir / "link/a"), "x");
}

TEST_F(AsideDirectoryTest, AnExistingDirectoryIsNotReplaced) {
  ASSERT_TRUE(make_directories(dir / "full"));
  ASSERT_TRUE(write_file_atomic(dir / "full/mine", "x"));
  ASSERT_TRUE(write_file_atomic(dir / "file", "x"));
  EXPECT_THAT(refusal(dir / "full"), HasSubstr("full is not empty"));
  EXPECT_THAT(refusal(dir / "file"), HasSubstr("file is there and is no directory"));
  EXPECT_THAT(refusal(""), HasSubstr("--out"));
  EXPECT_THAT(refusal("/"), HasSubstr("not empty"));
  EXPECT_THAT(refusal("/proc/self/fdinfo/x"), HasSubstr("/proc/self/fdinfo"));
  EXPECT_THAT(left(), testing::UnorderedElementsAre("full", "file"));
}

TEST_F(AsideDirectoryTest, ADirectoryThatAppearedMeanwhileIsNotReplaced) {
  auto aside = AsideDirectory::make_for(dir / "model");
  ASSERT_TRUE(aside);
  ASSERT_TRUE(make_directories(dir / "model"));
  ASSERT_TRUE(write_file_atomic(dir / "model/mine", "x"));
  EXPECT_FALSE(aside->put_in_place());
  EXPECT_EQ(*read_file(dir / "model/mine"), "x");
}

TEST_F(AsideDirectoryTest, MoreThanThereIsRoomForIsRefusedWithTheWayOut) {
  auto aside = AsideDirectory::make_for(dir / "model");
  ASSERT_TRUE(aside);
  EXPECT_TRUE(aside->check_room(1));
  const Status room = aside->check_room(1ULL << 62U);
  ASSERT_FALSE(room);
  EXPECT_THAT(room.error().message, HasSubstr("make room"));
}

TEST(SignalsWait, ASignalWaitsUntilTheUnfinishedDirectoryIsRemoved) {
  const auto come = [] {
    const SignalsWait signals;
    const bool before = signals.any();
    ::raise(SIGTERM);
    if (before || !signals.any()) ::_exit(1);
  };
  EXPECT_EXIT((come(), ::_exit(2)), testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace antdt::cli
