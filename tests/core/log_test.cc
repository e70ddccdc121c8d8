#include "core/log/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fs.h"

namespace antdt {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(LogTest, LinesBeforeTheSetUpGoToStandardErrorAndNotToTheOutput) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  log_warn("number {}", 7);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("number 7"));
}

TEST(LogTest, LinesGoToTheFileWithTheirLevelAndProgram) {
  const TempDir directory;
  ASSERT_TRUE(init_logging("antdtd", directory / "log"));
  log_debug("hidden");
  log_info("shown {}", "once");
  log_error("bad");
  const std::string text = read_file(directory / "log").value();
  EXPECT_THAT(text, Not(HasSubstr("hidden")));
  EXPECT_THAT(text, HasSubstr("info"));
  EXPECT_THAT(text, HasSubstr("antdtd["));
  EXPECT_THAT(text, HasSubstr("shown once\n"));
  EXPECT_THAT(text, HasSubstr("bad\n"));
  ASSERT_TRUE(init_logging("antdtd", ""));
}

TEST(LogTest, AFileThatCannotBeMadeIsAnErrorThatNamesIt) {
  const TempDir directory;
  ASSERT_TRUE(write_file_atomic(directory / "file", ""));
  const Status status = init_logging("antdtd", directory / "file/log");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr(directory / "file/log"));
}

TEST(LogTest, KnowsItsLevels) {
  EXPECT_EQ(parse_log_level("warn").value(), LogLevel::kWarn);
  EXPECT_FALSE(parse_log_level("loud"));
}

}  // namespace
}  // namespace antdt
