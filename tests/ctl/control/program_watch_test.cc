#include "ctl/control/program_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <variant>

namespace antdt::ctl::program {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using Watch = ProgramWatch;

class ProgramWatchTest : public testing::Test {
 protected:
  // The effects of a step, in a form that tests can query.
  struct Wanted {
    bool start = false, end = false;
    std::optional<std::string> news;
  };
  Wanted after(Duration pause, const Input& input) {
    now += pause;
    Effects effects;
    watch.step(input, now, effects);
    Wanted wanted;
    for (const Effect& effect : effects) {
      if (std::holds_alternative<StartProgram>(effect)) wanted.start = true;
      if (std::holds_alternative<EndProgram>(effect)) wanted.end = true;
      if (const auto* tell = std::get_if<TellOperator>(&effect)) wanted.news = tell->text;
    }
    return wanted;
  }
  void start() {
    ASSERT_TRUE(after(Duration::zero(), TimePassed{}).start);
    after(milliseconds(5), ProgramStarted{});
  }
  void answer() {
    after(milliseconds(5), ViewShown{});
    last = after(milliseconds(5), DecisionHeard{});
  }

  Watch watch;
  Wanted last;
  MonoTime now{seconds(1000)};
};

TEST_F(ProgramWatchTest, AProgramIsShownOneViewAtATimeOnceItRuns) {
  EXPECT_FALSE(watch.may_be_asked());
  start();
  EXPECT_TRUE(watch.may_be_asked());
  after(milliseconds(5), ViewShown{});
  EXPECT_FALSE(watch.may_be_asked());
  after(milliseconds(5), DecisionHeard{});
  EXPECT_TRUE(watch.may_be_asked());
  EXPECT_EQ(watch.trouble(), "");
}

TEST_F(ProgramWatchTest, AProgramThatAnswersLateIsEndedAndStartedAgain) {
  start();
  answer();
  after(milliseconds(5), ViewShown{});
  EXPECT_FALSE(after(Watch::kPatience - milliseconds(1), TimePassed{}).end);
  const Wanted late = after(milliseconds(1), TimePassed{});
  EXPECT_TRUE(late.end);
  EXPECT_THAT(late.news.value_or(""), HasSubstr("has not answered for 10 s"));
  EXPECT_THAT(watch.trouble(), HasSubstr("has not answered"));
  EXPECT_FALSE(after(Watch::kFirstPause - milliseconds(1), TimePassed{}).start);
  EXPECT_TRUE(after(milliseconds(1), TimePassed{}).start);
}

TEST_F(ProgramWatchTest, TheFirstAnswerMayTakeLonger) {
  start();
  after(milliseconds(5), ViewShown{});
  EXPECT_FALSE(after(Watch::kStartPatience - milliseconds(1), TimePassed{}).end);
  EXPECT_TRUE(after(milliseconds(1), TimePassed{}).end);
}

TEST_F(ProgramWatchTest, AProgramThatKeepsFailingWaitsLongerEachTimeAndIsReportedOnce) {
  Duration wait = Watch::kFirstPause;
  start();
  EXPECT_TRUE(after(milliseconds(5), ProgramFailed{"ended with code 1"}).news);
  for (int i = 0; i < 12; ++i) {
    EXPECT_FALSE(after(wait - milliseconds(1), TimePassed{}).start) << i;
    EXPECT_TRUE(after(milliseconds(1), TimePassed{}).start) << i;
    EXPECT_FALSE(after(Duration::zero(), ProgramFailed{"ended with code 1"}).news) << i;
    wait = std::min(2 * wait, Watch::kLongestPause);
  }
  EXPECT_EQ(wait, Watch::kLongestPause);
}

TEST_F(ProgramWatchTest, TheFailuresOfAProgramThatBecameReliableAreForgotten) {
  start();
  for (int i = 0; i < 3; ++i) {
    after(milliseconds(5), ProgramFailed{"ended with code 1"});
    EXPECT_TRUE(after(Watch::kLongestPause, TimePassed{}).start);
    after(milliseconds(5), ProgramStarted{});
  }
  for (int i = 0; i < Watch::kReliable; ++i) answer();
  EXPECT_EQ(last.news.value_or(""), "the program answers again");
  EXPECT_EQ(watch.trouble(), "");
  EXPECT_TRUE(after(milliseconds(5), ProgramFailed{"ended with code 1"}).news);
  EXPECT_TRUE(after(Watch::kFirstPause, TimePassed{}).start);
}

TEST_F(ProgramWatchTest, AProgramThatWasEndedDoesNotFailAgain) {
  start();
  after(milliseconds(5), ProgramFailed{"said nothing of use"});
  const Wanted again = after(milliseconds(5), ProgramFailed{"ended with code 1"});
  EXPECT_FALSE(again.end);
  EXPECT_FALSE(again.news);
}

}  // namespace
}  // namespace antdt::ctl::program
