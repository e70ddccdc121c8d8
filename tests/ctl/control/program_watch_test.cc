#include "ctl/control/program_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::ctl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using Watch = ProgramWatch;

class ProgramWatchTest : public testing::Test {
 protected:
  Watch::Wish after(Duration pause, const Watch::Event& event) {
    now += pause;
    return watch.step(event, now);
  }
  void start() {
    ASSERT_TRUE(after(Duration::zero(), Watch::Tick{}).start);
    std::ignore = after(milliseconds(5), Watch::Started{});
  }
  void answer() {
    std::ignore = after(milliseconds(5), Watch::Asked{});
    last = after(milliseconds(5), Watch::Answered{});
  }

  Watch watch;
  Watch::Wish last;
  MonoTime now{seconds(1000)};
};

TEST_F(ProgramWatchTest, ItIsAskedOneThingAtATimeOnceItRuns) {
  EXPECT_FALSE(watch.may_be_asked());
  start();
  EXPECT_TRUE(watch.may_be_asked());
  std::ignore = after(milliseconds(5), Watch::Asked{});
  EXPECT_FALSE(watch.may_be_asked());
  std::ignore = after(milliseconds(5), Watch::Answered{});
  EXPECT_TRUE(watch.may_be_asked());
  EXPECT_EQ(watch.trouble(), "");
}

TEST_F(ProgramWatchTest, WhoIsLateIsEndedAndStartedAgain) {
  start();
  answer();
  std::ignore = after(milliseconds(5), Watch::Asked{});
  EXPECT_FALSE(after(Watch::kPatience - milliseconds(1), Watch::Tick{}).end);
  const Watch::Wish late = after(milliseconds(1), Watch::Tick{});
  EXPECT_TRUE(late.end);
  EXPECT_THAT(late.news.value_or(""), HasSubstr("has not answered for 10 s"));
  EXPECT_THAT(watch.trouble(), HasSubstr("has not answered"));
  EXPECT_FALSE(after(Watch::kFirstWait - milliseconds(1), Watch::Tick{}).start);
  EXPECT_TRUE(after(milliseconds(1), Watch::Tick{}).start);
}

TEST_F(ProgramWatchTest, TheFirstAnswerMayTakeLonger) {
  start();
  std::ignore = after(milliseconds(5), Watch::Asked{});
  EXPECT_FALSE(after(Watch::kStartPatience - milliseconds(1), Watch::Tick{}).end);
  EXPECT_TRUE(after(milliseconds(1), Watch::Tick{}).end);
}

TEST_F(ProgramWatchTest, WhoFailsAgainAndAgainWaitsLongerAndIsSaidOnce) {
  Duration wait = Watch::kFirstWait;
  start();
  EXPECT_TRUE(after(milliseconds(5), Watch::Failed{"ended with code 1"}).news);
  for (int i = 0; i < 12; ++i) {
    EXPECT_FALSE(after(wait - milliseconds(1), Watch::Tick{}).start) << i;
    EXPECT_TRUE(after(milliseconds(1), Watch::Tick{}).start) << i;
    EXPECT_FALSE(after(Duration::zero(), Watch::Failed{"ended with code 1"}).news) << i;
    wait = std::min(2 * wait, Watch::kLongestWait);
  }
  EXPECT_EQ(wait, Watch::kLongestWait);
}

TEST_F(ProgramWatchTest, AProgramThatHasBecomeReliableBeginsAnew) {
  start();
  for (int i = 0; i < 3; ++i) {
    std::ignore = after(milliseconds(5), Watch::Failed{"ended with code 1"});
    EXPECT_TRUE(after(Watch::kLongestWait, Watch::Tick{}).start);
    std::ignore = after(milliseconds(5), Watch::Started{});
  }
  for (int i = 0; i < Watch::kReliable; ++i) answer();
  EXPECT_EQ(last.news.value_or(""), "the program answers again");
  EXPECT_EQ(watch.trouble(), "");
  EXPECT_TRUE(after(milliseconds(5), Watch::Failed{"ended with code 1"}).news);
  EXPECT_TRUE(after(Watch::kFirstWait, Watch::Tick{}).start);
}

TEST_F(ProgramWatchTest, WhatHappensToAnEndedProgramIsNoNewFailure) {
  start();
  std::ignore = after(milliseconds(5), Watch::Failed{"said nothing of use"});
  const Watch::Wish again = after(milliseconds(5), Watch::Failed{"ended with code 1"});
  EXPECT_FALSE(again.end);
  EXPECT_FALSE(again.news);
}

}  // namespace
}  // namespace antdt::ctl
