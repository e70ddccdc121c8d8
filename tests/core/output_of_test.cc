#include "core/os/output_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

TEST(OutputOfTest, IsWhatTheCommandWritesWithoutTheLastNewline) {
  EXPECT_EQ(output_of({"sh", "-c", "echo one; echo two >&2"}, seconds(20)).value(), "one\ntwo");
  EXPECT_EQ(output_of({"true"}, seconds(20)).value(), "");
}

TEST(OutputOfTest, AFailureSaysWhatTheCommandSaid) {
  const auto failed = output_of({"sh", "-c", "echo no room; exit 3"}, seconds(20));
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("no room"));
  EXPECT_FALSE(output_of({"sh", "-c", "kill -9 $$"}, seconds(20)));
  EXPECT_FALSE(output_of({"no-such-program-of-antdt"}, seconds(20)));
}

TEST(OutputOfTest, ACommandThatDoesNotEndIsKilled) {
  const SteadyClock clock;
  const MonoTime begun = clock.now();
  const auto failed = output_of({"sleep", "1000"}, milliseconds(50));
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("did not end"));
  EXPECT_LT(clock.now() - begun, seconds(20));
}

TEST(OutputOfTest, OfTooMuchTheBeginningIsKept) {
  const auto much = output_of({"sh", "-c", "head -c 1000000 /dev/zero"}, seconds(20));
  ASSERT_TRUE(much) << much.error().message;
  EXPECT_GE(much->size(), 64U << 10);
  EXPECT_LE(much->size(), 70U << 10);
}

}  // namespace
}  // namespace antdt
