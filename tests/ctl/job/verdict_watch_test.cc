// Tests which verdicts on stragglers are reported to people, and how often.
#include "ctl/job/observers/verdict_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::ctl {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class VerdictWatchTest : public ::testing::Test {
 protected:
  VerdictWatchTest() {
    view_.persistent_window = seconds(20);
    view_.workers.resize(2);
    for (std::uint32_t i = 0; i < 2; ++i) {
      view_.workers[i].member = {{'w', i}, Attempt{1}};
      view_.workers[i].host = "a";
      view_.workers[i].measured = true;
    }
  }
  void judge(VerdictKind kind, Cause cause = Cause::kUnknown, std::string seen = "") {
    view_.workers[1].verdict = {kind, 3, cause, std::move(seen), {}};
  }
  std::vector<std::string> look() {
    now_ += seconds(1);
    return watch_.look(view_, now_);
  }

  ClusterView view_;
  VerdictWatch watch_;
  MonoTime now_{std::chrono::hours(1)};
};

TEST_F(VerdictWatchTest, AVerdictIsToldAtItsSecondLookAndItsEndToo) {
  EXPECT_THAT(look(), IsEmpty());
  judge(VerdictKind::kTransient, Cause::kThrottled, "held back");
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_THAT(look(),
              ElementsAre("w1 on a is a transient straggler, 3.0x slower (throttled): held back"));
  EXPECT_THAT(look(), IsEmpty());
  judge(VerdictKind::kNone);
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_THAT(look(), ElementsAre("w1 is as fast as the others again"));
  EXPECT_THAT(look(), IsEmpty());
}

TEST_F(VerdictWatchTest, AStragglerOfWhichNothingIsMeasuredAfterANewPlanIsNotAsFastAsTheOthers) {
  judge(VerdictKind::kTransient, Cause::kCompute);
  look();
  EXPECT_EQ(look().size(), 1U);
  judge(VerdictKind::kNone);
  view_.workers[1].measured = false;
  for (int i = 0; i < 5; ++i) EXPECT_THAT(look(), IsEmpty());
  judge(VerdictKind::kTransient, Cause::kCompute);
  view_.workers[1].measured = true;
  for (int i = 0; i < 3; ++i) EXPECT_THAT(look(), IsEmpty()) << "it still is what it was";
  judge(VerdictKind::kNone);
  look();
  EXPECT_THAT(look(), ElementsAre("w1 is as fast as the others again"));
}

TEST_F(VerdictWatchTest, AnotherCauseOrKindIsToldAndTheSameOneOnceInAPersistentWindow) {
  const auto told = [&](Cause cause, VerdictKind kind = VerdictKind::kTransient) {
    judge(kind, cause);
    const std::size_t first = look().size();
    return first + look().size();
  };
  EXPECT_EQ(told(Cause::kCompute), 1U);
  EXPECT_EQ(told(Cause::kThrottled), 1U);
  EXPECT_EQ(told(Cause::kCompute), 0U) << "it was said a moment ago";
  EXPECT_EQ(told(Cause::kThrottled, VerdictKind::kPersistent), 1U);
  now_ += seconds(20);
  EXPECT_EQ(told(Cause::kCompute), 1U);
}

TEST_F(VerdictWatchTest, VerdictsOfOneLookAndLeadersAreNotReported) {
  for (int i = 0; i < 5; ++i) {
    judge(VerdictKind::kTransient, Cause::kCompute);
    EXPECT_THAT(look(), IsEmpty());
    judge(VerdictKind::kLeader);
    EXPECT_THAT(look(), IsEmpty());
  }
}

TEST_F(VerdictWatchTest, SomeOfManyVerdictsAreReportedAndTheRestCounted) {
  view_.workers.resize(20, view_.workers[1]);
  for (std::uint32_t i = 0; i < 20; ++i) {
    view_.workers[i].member.worker.index = i;
    view_.workers[i].verdict.kind = VerdictKind::kTransient;
  }
  EXPECT_THAT(look(), IsEmpty());
  const auto news = look();
  ASSERT_EQ(news.size(), 9U);
  EXPECT_EQ(news.back(), "12 verdicts more; antdt status has them all");
}

TEST(VerdictText, SaysKindSeverityAndCause) {
  EXPECT_EQ(verdict_text({}), "ok");
  EXPECT_EQ(verdict_text({VerdictKind::kLeader, 0.4, Cause::kUnknown, "", {}}),
            "leader, 2.5x faster");
  EXPECT_EQ(verdict_text({VerdictKind::kPersistent, 1.8, Cause::kNetwork, "", {}}),
            "persistent straggler, 1.8x slower (network)");
}

}  // namespace
}  // namespace antdt::ctl
