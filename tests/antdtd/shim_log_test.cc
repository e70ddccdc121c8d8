#include "antdtd/shim/shim_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "core/os/fs.h"

namespace antdt::antdtd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::uintmax_t size_of(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

TEST(ShimLog, MakesItsDirectoryAndWritesWhatItIsGiven) {
  const TempDir dir;
  ShimLog log(dir / "logs/w0.1.out", 0);
  log.append("one\n");
  log.append("two\n");
  ASSERT_TRUE(log.finish(seconds(20)));
  EXPECT_EQ(read_file(dir / "logs/w0.1.out").value_or("?"), "one\ntwo\n");
}

TEST(ShimLog, BothFilesTogetherStayWithinTheBoundAndEndWithTheLastLine) {
  constexpr std::uint64_t kMax = 10000;
  const TempDir dir;
  const std::string path = dir / "w0.1.out";
  ShimLog log(path, kMax);
  for (int i = 0; i < 5000; ++i) log.append(fmt::format("line {}\n", i));
  ASSERT_TRUE(log.finish(seconds(20)));
  EXPECT_LE(size_of(path) + size_of(path + ".1"), kMax);
  EXPECT_GT(size_of(path + ".1"), kMax / 3);
  const std::string text = read_file(path).value_or("");
  EXPECT_TRUE(text.ends_with("line 4999\n"));
  EXPECT_THAT(text, StartsWith("line ")) << "lines are not cut in two";
}

TEST(ShimLog, ALineLongerThanAFileIsCutRatherThanTheBoundBroken) {
  const TempDir dir;
  const std::string path = dir / "w0.1.out";
  ShimLog log(path, 1000);
  log.append(std::string(5000, 'x'));
  ASSERT_TRUE(log.finish(seconds(20)));
  EXPECT_LE(size_of(path) + size_of(path + ".1"), 1000u);
}

// Opening a fifo without a reader for writing hangs, like a dead network filesystem.
TEST(ShimLog, AHungDiskBlocksNobodyAndTheLossIsReported) {
  const TempDir dir;
  const std::string path = dir / "hung";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  ShimLog log(path, 1 << 20, 1000);
  for (int i = 0; i < 100; ++i) log.append(std::string(99, 'a') + "\n");
  EXPECT_FALSE(log.finish(milliseconds(50)));

  // The disk comes back: the kept output is written, and the amount that was lost is reported.
  const int reader = open(path.c_str(), O_RDONLY);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(log.finish(seconds(20)));
  std::string text(20000, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(read(reader, text.data(), 20000), 0)));
  close(reader);
  EXPECT_THAT(text, HasSubstr("bytes of output dropped]"));
  EXPECT_THAT(text, StartsWith(std::string(99, 'a')));
}

TEST(ShimLog, AFullDiskBlocksNobody) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  const TempDir dir;
  const std::string path = dir / "full";
  ASSERT_EQ(symlink("/dev/full", path.c_str()), 0);
  ShimLog log(path, 1 << 20);
  for (int i = 0; i < 1000; ++i) log.append("lost\n");
  EXPECT_TRUE(log.finish(seconds(20)));
}

}  // namespace
}  // namespace antdt::antdtd
