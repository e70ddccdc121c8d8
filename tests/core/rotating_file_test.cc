#include "core/os/rotating_file.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "core/log/background_log.h"
#include "core/os/fs.h"
#include "core/standstill_clock.h"

namespace antdt {
namespace {

using testing::HasSubstr;

TEST(RotatingFile, TheNewestLinesStayWithinItsSize) {
  const TempDir directory;
  const std::string path = directory / "log";
  RotatingFile file(path, 100);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(file.append(fmt::format("line {:4}\n", i)));
  EXPECT_LE(std::filesystem::file_size(path) + std::filesystem::file_size(path + ".1"), 100U);
  const std::string text = read_rotated(path);
  EXPECT_THAT(text, HasSubstr("line   49\n"));
  EXPECT_THAT(text, HasSubstr("line   45\nline   46\nline   47\n"));
  EXPECT_GE(text.size(), 50U);
}

TEST(RotatingFile, GoesOnWhereAnEarlierOneEnded) {
  const TempDir directory;
  const std::string path = directory / "log";
  for (const char* line : {"one\n", "two\n"}) {
    ASSERT_TRUE(RotatingFile(path, 1000).append(line));
  }
  EXPECT_EQ(read_rotated(path), "one\ntwo\n");
}

TEST(RotatingFile, ALineLargerThanTheBoundIsKeptAlone) {
  const TempDir directory;
  RotatingFile file(directory / "log", 10);
  ASSERT_TRUE(file.append("small\n"));
  ASSERT_TRUE(file.append("larger than ten bytes\n"));
  EXPECT_EQ(read_rotated(directory / "log"), "small\nlarger than ten bytes\n");
}

TEST(RotatingFile, IsTriedAgainWhereItCouldNotBeOpened) {
  const TempDir directory;
  RotatingFile file(directory / "not/there", 100);
  EXPECT_THAT(file.append("lost\n").error().message, HasSubstr("not/there"));
  ASSERT_TRUE(make_directories(directory / "not"));
  EXPECT_TRUE(file.append("kept\n"));
  EXPECT_EQ(read_rotated(directory / "not/there"), "kept\n");
}

TEST(BackgroundLog, WritesWhatWasLogged) {
  const TempDir directory;
  const SteadyClock clock;
  {
    auto log = BackgroundLog::start("a-program", {directory / "log"}, clock);
    ASSERT_TRUE(log) << log.error().message;
    log_info("it says {}", 7);
    ASSERT_TRUE(log->flush(std::chrono::seconds(10)));
    EXPECT_THAT(read_file(directory / "log").value_or(""), HasSubstr("a-program["));
    log_warn("the last words");
  }
  EXPECT_THAT(read_file(directory / "log").value_or(""), HasSubstr("]: the last words\n"));
}

TEST(BackgroundLog, SaysWhichFileCannotBeOpened) {
  const TempDir directory;
  const SteadyClock clock;
  const auto log = BackgroundLog::start("a-program", {directory / "not/there"}, clock);
  ASSERT_FALSE(log);
  EXPECT_THAT(log.error().message, HasSubstr("not/there"));
}

TEST(StandstillClock, CountsNoMoreThanASecondOfWhatItSawNothingOf) {
  ManualClock real;
  const StandstillClock clock(real);
  const MonoTime begin = clock.now();
  real.advance(std::chrono::milliseconds(900));
  EXPECT_EQ(clock.now() - begin, std::chrono::milliseconds(900));
  real.advance(std::chrono::minutes(5));
  EXPECT_EQ(clock.now() - begin, std::chrono::milliseconds(1900));
  EXPECT_EQ(clock.stood_still(), std::chrono::seconds(299));
  real.advance(std::chrono::milliseconds(100));
  EXPECT_EQ(clock.now() - begin, std::chrono::milliseconds(2000));
}

}  // namespace
}  // namespace antdt
