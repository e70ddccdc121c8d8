// What visits of replicas in other domains find, and which threshold follows.
#include "ctl/control/solutions/scout_skew.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace antdt::ctl {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;

// A job whose replicas visit other domains.
class ScoutSkewTest : public ::testing::Test {
 protected:
  // The next visit: how much less accurate guests are, and which part of the bytes was sent. The
  // threshold that the solution wants afterwards; 0: it wants nothing.
  double visit(double loss, double bytes, std::uint64_t steps = 50) {
    wire::Visit found;
    found.step = step_ = Step{step_.value + 50};
    found.threshold = threshold_;
    found.steps = steps;
    found.records = 1000;
    found.own_right = 900;
    found.guest_right = 900 - static_cast<std::uint64_t>(1000 * loss);
    found.sent_bytes = static_cast<std::uint64_t>(1e6 * bytes);
    found.dense_bytes = 1'000'000;
    return decide(found);
  }
  double decide(const wire::Visit& found) {
    ClusterView view;
    view.visit = found;
    view.threshold = threshold_;
    const Decision decision = solution_.decide(view, MonoTime(hours(1)));
    if (decision.actions.empty()) return 0;
    reason_ = decision.reason;
    return std::get<SetSync>(decision.actions.at(0)).threshold;
  }

  solutions::ScoutSkew solution_{{.every = 50}};
  double threshold_ = 0.2;
  Step step_;
  std::string reason_;
};

TEST_F(ScoutSkewTest, ALossBeyondWhatIsToleratedTightensTheThreshold) {
  EXPECT_TRUE(solution_.looks_at_visits());
  EXPECT_DOUBLE_EQ(visit(0.3, 0.02), 0.1);
  EXPECT_THAT(reason_, HasSubstr("did 30.0% worse"));
  threshold_ = 0.1;
  EXPECT_DOUBLE_EQ(visit(0.2, 0.03), 0.05);
  threshold_ = 0.05;
  EXPECT_EQ(visit(0.04, 0.06), 0) << "tolerated";
}

TEST_F(ScoutSkewTest, ThoseThatLoseNothingSendLess) {
  EXPECT_EQ(visit(0, 0.1), 0) << "one calm visit may be luck";
  EXPECT_DOUBLE_EQ(visit(0, 0.1), 0.4);
}

TEST_F(ScoutSkewTest, AVisitTooSoonAfterAChangeSaysNothing) {
  EXPECT_EQ(visit(0.3, 0.02, 24), 0);
  EXPECT_DOUBLE_EQ(visit(0.3, 0.02, 25), 0.1);
  EXPECT_EQ(visit(0.3, 0.02), 0.1) << "still 0.2: the job may only advise actions";
}

TEST_F(ScoutSkewTest, AVisitUnderAnotherThresholdThanTheOneInForceSaysNothing) {
  wire::Visit found{.step = Step{50}, .threshold = 0.1, .steps = 50, .records = 10};
  found.own_right = 10;
  found.dense_bytes = 10;
  EXPECT_EQ(decide(found), 0);
}

// The job daemon began again, or an operator's run with another threshold.
TEST_F(ScoutSkewTest, FromAThresholdThatItHasNotChosenItBeginsAnew) {
  EXPECT_DOUBLE_EQ(visit(0.3, 0.02), 0.1);
  threshold_ = 3;  // above the bounds of the scout
  EXPECT_DOUBLE_EQ(visit(0.3, 0.02), 1.5);
}

TEST_F(ScoutSkewTest, AModelWithoutRightAnswersIsJudgedByItsLoss) {
  wire::Visit found{.step = Step{50}, .threshold = 0.2, .steps = 50, .records = 1000};
  found.own_loss = 90;
  found.guest_loss = 100;
  found.sent_bytes = 10;
  found.dense_bytes = 1000;
  EXPECT_DOUBLE_EQ(accuracy_loss(found), 0.1);
  EXPECT_DOUBLE_EQ(decide(found), 0.1);
  found.guest_loss = 0;
  found.own_loss = 0;
  EXPECT_EQ(accuracy_loss(found), 0);
}

}  // namespace
}  // namespace antdt::ctl
