// When an agent starts a job daemon again, and when it takes one for hung.
#include "antdtd/agent/job_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace antdt::antdtd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const MonoTime kBegan = MonoTime{} + std::chrono::hours(1);

using keeper::JobKeeper;

// A keeper that receives one event after the other, and its effects.
class Keeper {
 public:
  struct Wanted {
    bool launch = false, kill = false, kill_shim = false;
    std::string note;
    std::string given_up;
  };
  explicit Keeper(Duration hung_after = {}) : machine_(hung_after) {}
  Wanted start(MonoTime now) { return step(keeper::StartOrdered{}, now); }
  void adopt(Attempt attempt, MonoTime now) { step(keeper::DaemonAdopted{attempt}, now); }
  Wanted exited(const ExitStatus& status, MonoTime now) {
    return step(keeper::DaemonExited{status}, now);
  }
  void job_is_over() { step(keeper::JobEndAnnounced{}, kBegan); }
  void heard(MonoTime now) { step(keeper::DaemonSpoke{}, now); }
  Wanted tick(MonoTime now) { return step(keeper::TimePassed{}, now); }
  [[nodiscard]] const JobKeeper* operator->() const { return &machine_; }

 private:
  Wanted step(const keeper::Input& input, MonoTime now) {
    keeper::Effects effects;
    machine_.step(input, now, effects);
    Wanted wanted;
    for (const keeper::Effect& effect : effects) {
      if (std::holds_alternative<keeper::LaunchDaemon>(effect)) wanted.launch = true;
      if (std::holds_alternative<keeper::KillDaemon>(effect)) wanted.kill = true;
      if (std::holds_alternative<keeper::KillShim>(effect)) wanted.kill_shim = true;
      if (const auto* said = std::get_if<keeper::ReportOnJob>(&effect)) wanted.note = said->text;
      if (const auto* gave = std::get_if<keeper::GiveUpJob>(&effect)) wanted.given_up = gave->why;
    }
    return wanted;
  }
  JobKeeper machine_;
};

TEST(JobKeeper, AnEndThatTheDaemonChoseIsTheJobsEnd) {
  for (const int code : {0, 1, 2, 3, 4, 75}) {
    Keeper keeper;
    EXPECT_TRUE(keeper.start(kBegan).launch);
    EXPECT_FALSE(keeper.exited({code, 0, {}, {}}, kBegan).launch);
    EXPECT_EQ(keeper->state(), JobKeeper::State::kOver) << code;
  }
}

TEST(JobKeeper, ASignalOrAnUnknownCodeStartsItAgainWithANewAttempt) {
  for (const ExitStatus& death : {ExitStatus{-1, 9, {}, {}}, ExitStatus{134, 0, {}, {}}}) {
    Keeper keeper;
    EXPECT_TRUE(keeper.start(kBegan).launch);
    EXPECT_FALSE(keeper.exited(death, kBegan).launch);
    ASSERT_TRUE(keeper->next_wakeup());
    EXPECT_TRUE(keeper.tick(*keeper->next_wakeup()).launch);
    EXPECT_EQ(keeper->attempt(), Attempt{2});
  }
}

TEST(JobKeeper, TheFirstRestartIsAtOnceAndLaterOnesPause) {
  Keeper keeper;
  EXPECT_TRUE(keeper.start(kBegan).launch);
  keeper.exited({-1, 9, {}, {}}, kBegan);
  EXPECT_TRUE(keeper.tick(kBegan).launch);
  keeper.exited({-1, 9, {}, {}}, kBegan);
  EXPECT_FALSE(keeper.tick(kBegan).launch);
  EXPECT_TRUE(keeper.tick(kBegan + seconds(2)).launch);
}

// The exit status of a job daemon that cannot begin: keys, a lock, a disk.
const ExitStatus kCannotBegin{5, 0, {}, "antdt-jobd: reading the key job.key: No such file\n"};

TEST(JobKeeper, ADaemonThatCannotBeginAgainIsTriedAfterGrowingPausesUntilPatienceIsOver) {
  Keeper keeper;
  EXPECT_TRUE(keeper.start(kBegan).launch);
  keeper.exited({-1, 9, {}, {}}, kBegan);
  MonoTime now = kBegan;
  Duration last{};
  int tries = 0;
  Keeper::Wanted decision;
  for (; !keeper->ended(); ++tries) {
    ASSERT_LT(tries, 1000) << "for ever";
    now = *keeper->next_wakeup();
    ASSERT_TRUE(keeper.tick(now).launch);
    if (tries % 2 == 1) now += JobKeeper::kSoon;  // its disk was slow to say no
    decision = keeper.exited(kCannotBegin, now);
    if (keeper->ended()) break;
    const Duration pause = *keeper->next_wakeup() - now;
    EXPECT_GE(pause, last) << tries;
    EXPECT_LE(pause, JobKeeper::kLongestPause) << tries;
    last = pause;
  }
  EXPECT_EQ(last, JobKeeper::kLongestPause);
  EXPECT_GE(now - kBegan, JobKeeper::kPatience);
  EXPECT_LE(now - kBegan, JobKeeper::kPatience + JobKeeper::kLongestPause + JobKeeper::kSoon);
  EXPECT_EQ(keeper->state(), JobKeeper::State::kGaveUp);
  EXPECT_THAT(decision.note, HasSubstr("exit code 5"));
  EXPECT_THAT(decision.note, HasSubstr("reading the key job.key")) << "its last words";
  EXPECT_THAT(decision.given_up, StartsWith("its job daemon could not go on for 10 minutes"));
  EXPECT_EQ(keeper->next_wakeup(), std::nullopt);
}

TEST(JobKeeper, ATroubleThatPassesLeavesNothingBehind) {
  Keeper keeper;
  EXPECT_TRUE(keeper.start(kBegan).launch);
  MonoTime now = kBegan;
  for (int outage = 0; outage < 5; ++outage) {
    keeper.exited({-1, 9, {}, {}}, now);
    for (int times = 0; times < 30; ++times) {
      now = *keeper->next_wakeup();
      ASSERT_TRUE(keeper.tick(now).launch);
      keeper.exited(kCannotBegin, now);
    }
    now = *keeper->next_wakeup();
    ASSERT_TRUE(keeper.tick(now).launch);
    now += JobKeeper::kSoon;  // the job daemon runs again
  }
  EXPECT_EQ(keeper->state(), JobKeeper::State::kUp);
}

TEST(JobKeeper, ADaemonThatCrashesAtTheSameInputAgainAndAgainIsNotStartedForEver) {
  Keeper keeper;
  EXPECT_TRUE(keeper.start(kBegan).launch);
  MonoTime now = kBegan;
  Keeper::Wanted decision;
  std::size_t crashes = 0;
  while (!keeper->ended()) {
    ASSERT_LT(crashes, 100U) << "for ever";
    now += seconds(5);  // the daemon lives until the worker asks again
    decision = keeper.exited({-1, SIGABRT, {}, "check failed: a != b\n"}, now);
    ++crashes;
    if (keeper->ended()) break;
    now = *keeper->next_wakeup();
    EXPECT_TRUE(keeper.tick(now).launch);
  }
  EXPECT_EQ(crashes, JobKeeper::kMostCrashes);
  EXPECT_THAT(decision.note, HasSubstr("crashed 10 times"));
  EXPECT_THAT(decision.note, HasSubstr("signal 6"));
  EXPECT_THAT(decision.note, HasSubstr("check failed: a != b"));
  EXPECT_THAT(decision.given_up, AllOf(StartsWith("its job daemon crashed 10 times"),
                                       HasSubstr("check failed: a != b")));
}

TEST(JobKeeper, CrashesFarApartAndKillsByOthersAreNoRow) {
  Keeper keeper;
  EXPECT_TRUE(keeper.start(kBegan).launch);
  MonoTime now = kBegan;
  for (int death = 0; death < 100; ++death) {
    const bool crash = death % 2 == 0;
    now += crash ? JobKeeper::kSettled : seconds(3);
    keeper.exited({-1, crash ? SIGSEGV : SIGKILL, {}, {}}, now);
    ASSERT_TRUE(keeper->next_wakeup()) << death;
    now = *keeper->next_wakeup();
    EXPECT_TRUE(keeper.tick(now).launch);
  }
}

TEST(JobKeeper, AfterADaemonThatLivedForAWhileTheCountBeginsAnew) {
  Keeper keeper;
  EXPECT_TRUE(keeper.start(kBegan).launch);
  for (int death = 1; death <= 20; ++death) {
    keeper.exited({-1, 9, {}, {}}, kBegan + seconds(4 * death));
    EXPECT_TRUE(keeper.tick(kBegan + seconds(4 * death + 1)).launch) << death;
  }
}

TEST(JobKeeper, ADaemonThatCannotBeExecutedIsNotTriedAgain) {
  Keeper keeper;
  EXPECT_TRUE(keeper.start(kBegan).launch);
  const auto decision = keeper.exited({-1, 0, "cannot execute /x: No such file", {}}, kBegan);
  EXPECT_EQ(keeper->state(), JobKeeper::State::kGaveUp);
  EXPECT_THAT(decision.note, HasSubstr("cannot execute /x"));
  EXPECT_EQ(decision.given_up, "its job daemon cannot be started: cannot execute /x: No such file");
}

TEST(JobKeeper, AfterTheJobIsOverNoDeathStartsItAgain) {
  Keeper keeper;
  EXPECT_TRUE(keeper.start(kBegan).launch);
  keeper.job_is_over();
  EXPECT_EQ(keeper.exited({-1, 9, {}, {}}, kBegan).given_up, "");
  EXPECT_EQ(keeper->state(), JobKeeper::State::kOver);
}

TEST(JobKeeper, ADaemonThatAnnouncedTheEndMayBeSilentWhileItsLastHooksRun) {
  Keeper keeper(seconds(10));
  keeper.start(kBegan);
  keeper.heard(kBegan);
  keeper.job_is_over();
  EXPECT_FALSE(keeper.tick(kBegan + JobKeeper::kAfterTheEnd - seconds(1)).kill);
  EXPECT_TRUE(keeper.tick(kBegan + JobKeeper::kAfterTheEnd).kill) << "its agent should have";
}

TEST(JobKeeper, AJobDaemonThatWasHeardAndFallsSilentIsKilledOnceAndStartedAgain) {
  Keeper keeper(seconds(30));
  keeper.start(kBegan);
  EXPECT_EQ(keeper->next_wakeup(), kBegan + JobKeeper::kUnheard)
      << "not heard yet: it may be replaying its journal";
  keeper.heard(kBegan);
  keeper.heard(kBegan + seconds(5));
  EXPECT_FALSE(keeper.tick(kBegan + seconds(34)).kill);
  EXPECT_EQ(keeper->next_wakeup(), kBegan + seconds(35));
  EXPECT_TRUE(keeper.tick(kBegan + seconds(35)).kill);
  EXPECT_FALSE(keeper.tick(kBegan + seconds(36)).kill);
  keeper.exited({-1, 9, {}, {}}, kBegan + seconds(36));
  EXPECT_TRUE(keeper.tick(kBegan + seconds(36)).launch);
  EXPECT_FALSE(keeper.tick(kBegan + seconds(300)).kill) << "the new one was not heard yet";
}

TEST(JobKeeper, AShimThatDoesNotKillItsSilentJobDaemonIsKilledItself) {
  Keeper keeper(seconds(30));
  keeper.start(kBegan);
  keeper.heard(kBegan);
  EXPECT_TRUE(keeper.tick(kBegan + seconds(30)).kill);
  EXPECT_FALSE(keeper.tick(kBegan + seconds(34)).kill_shim);
  EXPECT_EQ(keeper->next_wakeup(), kBegan + seconds(35));
  EXPECT_TRUE(keeper.tick(kBegan + seconds(35)).kill_shim);
  EXPECT_TRUE(keeper.tick(kBegan + seconds(40)).kill_shim) << "until it is gone";
  keeper.exited({-1, 9, {}, {}}, kBegan + seconds(41));
  EXPECT_TRUE(keeper.tick(kBegan + seconds(41)).launch);
}

TEST(JobKeeper, ADaemonThatIsNeverHeardIsKilledInTheEnd) {
  Keeper keeper(seconds(30));
  keeper.start(kBegan);
  EXPECT_FALSE(keeper.tick(kBegan + JobKeeper::kUnheard - seconds(1)).kill);
  EXPECT_TRUE(keeper.tick(kBegan + JobKeeper::kUnheard).kill);
}

TEST(JobKeeper, ADaemonThatStoppedWhileItsAgentWasReplacedIsKilledToo) {
  Keeper keeper(seconds(30));
  keeper.adopt(Attempt{3}, kBegan);
  EXPECT_TRUE(keeper.tick(kBegan + seconds(30)).kill);
}

TEST(JobKeeper, WithoutABoundSilenceIsNothing) {
  Keeper keeper;
  keeper.start(kBegan);
  keeper.heard(kBegan);
  EXPECT_FALSE(keeper.tick(kBegan + std::chrono::hours(10)).kill);
}

}  // namespace
}  // namespace antdt::antdtd
