#include "ctl/processes/standbys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/overloaded.h"

namespace antdt::ctl::standby {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class StandbysTest : public testing::Test {
 protected:
  void make(std::uint32_t wanted, std::optional<std::uint32_t> own = {}) {
    standbys.emplace(wanted, Incarnation{2}, own);
  }
  // The effects as text: "start h1 j1.200000".
  std::vector<std::string> step(const Input& input) {
    Effects effects;
    standbys->step(input, now, effects);
    std::vector<std::string> said;
    for (const Effect& effect : effects) {
      said.push_back(std::visit(
          Overloaded{[](const StartStandby& e) { return "start " + e.host + " " + text(e.member); },
                     [](const StopStandby& e) { return "stop " + e.host + " " + text(e.member); },
                     [](const TellOperator& e) { return e.text; }},
          effect));
    }
    return said;
  }
  static std::string text(Member m) { return fmt::format("{}.{}", m.worker, m.attempt); }
  std::vector<std::string> come(std::uint32_t order, std::optional<std::uint32_t> up = {}) {
    const std::string name = fmt::format("h{}", order);
    return step(HostCame{name, name, order, up ? std::optional(Attempt{*up}) : std::nullopt});
  }
  static Member member(std::uint32_t order, std::uint32_t attempt) {
    return {{kStandby, order}, Attempt{attempt}};
  }

  MonoTime now{};
  std::optional<Standbys> standbys;
};

TEST_F(StandbysTest, AsManyAsAreWantedAreStartedInTheOrderInWhichHostsCome) {
  make(2);
  EXPECT_THAT(come(3), ElementsAre("start h3 j3.200000"));
  EXPECT_THAT(come(1), ElementsAre("start h1 j1.200000"));
  EXPECT_THAT(come(2), IsEmpty());
  EXPECT_THAT(step(StandbyStarted{member(1, 200000)}),
              ElementsAre("a job daemon stands by on h1, to go on if this one's host is lost"));
}

TEST_F(StandbysTest, AHostThatIsLostIsReplaced) {
  make(1);
  come(1);
  come(2);
  EXPECT_THAT(step(HostGone{"h1"}), ElementsAre("start h2 j2.200000"));
}

TEST_F(StandbysTest, OneThatAnEarlierIncarnationStartedIsKept) {
  make(1);
  EXPECT_THAT(come(1, 100007), IsEmpty());
  EXPECT_THAT(
      step(StandbyEnded{member(1, 100007), "signal 9"}),
      ElementsAre("the job daemon that stood by on h1 ended: signal 9; tried again in 5 s"));
  now += seconds(5);
  EXPECT_THAT(step(TimePassed{}), ElementsAre("start h1 j1.200000"));
}

TEST_F(StandbysTest, TheHostOfThisJobDaemonIsLeftOut) {
  make(2, 1);
  EXPECT_THAT(come(1, 100000), IsEmpty());
  EXPECT_THAT(come(2), ElementsAre("start h2 j2.200000"));
}

TEST_F(StandbysTest, AStartThatIsNotAnsweredIsRepeated) {
  make(1);
  come(1);
  now += Standbys::kAskAgain - seconds(1);
  EXPECT_THAT(step(TimePassed{}), IsEmpty());
  now += seconds(1);
  EXPECT_THAT(step(TimePassed{}), ElementsAre("start h1 j1.200000"));
  EXPECT_THAT(come(1), IsEmpty()) << "the agent was restarted";
}

TEST_F(StandbysTest, AnotherHostStepsInWhileOnePausesAndThePausesGrow) {
  make(1);
  come(1);
  come(2);
  EXPECT_THAT(step(StandbyEnded{member(1, 200000), "keys are missing"}),
              ElementsAre("the job daemon that stood by on h1 ended: keys are missing; tried again "
                          "in 5 s",
                          "start h2 j2.200000"));
  step(StandbyEnded{member(2, 200000), "keys are missing"});
  now += seconds(5);
  EXPECT_THAT(step(TimePassed{}), ElementsAre("start h1 j1.200001"));
  EXPECT_THAT(step(StandbyEnded{member(1, 200001), "keys are missing"}),
              ElementsAre("the job daemon that stood by on h1 ended: keys are missing; tried again "
                          "in 10 s",
                          "start h2 j2.200001"));
}

TEST_F(StandbysTest, MoreThanAreWantedAreStopped) {
  make(1);
  come(2, 100001);
  EXPECT_THAT(come(1, 100000), ElementsAre("stop h2 j2.100001"));
  EXPECT_THAT(step(StandbyEnded{member(2, 100001), "signal 15"}), IsEmpty());
}

TEST_F(StandbysTest, WhatIsSaidOfAnOldOneChangesNothing) {
  make(1);
  come(1);
  EXPECT_THAT(step(StandbyEnded{member(1, 1999), "signal 9"}), IsEmpty());
  EXPECT_THAT(step(StandbyStarted{member(7, 200000)}), IsEmpty());
  EXPECT_THAT(step(StandbyEnded{{{'w', 1}, Attempt{200000}}, "signal 9"}), IsEmpty());
}

TEST_F(StandbysTest, AfterTheJobsEndAllAreStoppedAndNoneIsStarted) {
  make(2);
  come(1);
  come(2);
  step(StandbyStarted{member(1, 200000)});
  EXPECT_THAT(step(JobEnded{}), ElementsAre("stop h1 j1.200000", "stop h2 j2.200000"));
  EXPECT_THAT(step(StandbyStarted{member(2, 200000)}), IsEmpty());
  EXPECT_THAT(step(StandbyEnded{member(1, 200000), "exit code 0"}), IsEmpty());
  EXPECT_THAT(come(3), IsEmpty());
  now += seconds(600);
  EXPECT_THAT(step(TimePassed{}), IsEmpty());
}

TEST_F(StandbysTest, NoneIsWantedWithoutAStore) {
  make(0);
  EXPECT_THAT(come(1), IsEmpty());
}

}  // namespace
}  // namespace antdt::ctl::standby
