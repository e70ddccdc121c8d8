// Records that may not leave their domain: how steps are divided among domains, and when a plan
// follows what is left.
#include "ctl/control/domain_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "effects_of.h"
#include "tests/ctl/control/virtual_cluster.h"

namespace antdt::ctl {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::w;

const std::vector<WorkerId> kFour = {w(0), w(1), w(2), w(3)};

DomainRests rests(std::uint64_t east, std::uint64_t west) {
  return {{"east", {w(0), w(2)}, east}, {"west", {w(1), w(3)}, west}};
}

TEST(DomainPartsTest, ADomainsWorkersShareItsPartInTheirOwnProportions) {
  EXPECT_THAT(by_domain(kFour, {1, 1, 3, 1}, rests(8, 2)), ElementsAre(2, 1, 6, 1));
}

TEST(DomainPartsTest, WithoutWeightsTheyShareItEqually) {
  EXPECT_THAT(by_domain(kFour, {0, 1, 0, 3}, rests(8, 4)), ElementsAre(4, 1, 4, 3));
}

TEST(DomainPartsTest, NothingChangesWithoutDomainsAndWhenNothingIsLeft) {
  EXPECT_THAT(by_domain(kFour, {1, 2, 3, 4}, {}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(by_domain(kFour, {1, 2, 3, 4}, rests(0, 0)), ElementsAre(1, 2, 3, 4));
}

TEST(DomainPartsTest, AWorkerOfNoDomainAndOneWhoseDomainIsDoneGetNothing) {
  EXPECT_THAT(by_domain(kFour, {1, 1, 1, 1}, {{"east", {w(0)}, 5}, {"west", {w(1)}, 0}}),
              ElementsAre(5, 0, 0, 0));
}

wire::Plan plan_of(std::uint32_t w0, std::uint32_t w1, std::uint32_t w2, std::uint32_t w3) {
  return {PlanVersion{1}, {{w(0), w0, 1}, {w(1), w1, 1}, {w(2), w2, 1}, {w(3), w3, 1}}};
}

TEST(DomainPartsTest, TheDomainThatWouldGoOnForMuchLongerIsNamed) {
  const auto longer = longest_domain(plan_of(10, 10, 10, 10), rests(6000, 2000));
  ASSERT_TRUE(longer);
  EXPECT_EQ(longer->domain, "east");
  EXPECT_EQ(longer->worker, w(0));
  EXPECT_THAT(longer->of_rest, DoubleEq(0.75));
  EXPECT_THAT(longer->of_plan, DoubleEq(0.5));
}

TEST(DomainPartsTest, DomainsThatEndAboutTogetherAndTheLastStepsAreLeftAlone) {
  EXPECT_FALSE(longest_domain(plan_of(15, 5, 15, 5), rests(6000, 2000)));
  EXPECT_FALSE(longest_domain(plan_of(15, 5, 15, 5), rests(6300, 2000)));
  EXPECT_FALSE(longest_domain(plan_of(10, 10, 10, 10), rests(380, 20)));
  EXPECT_FALSE(longest_domain(plan_of(10, 10, 10, 10), {}));
}

// A controller whose solution wishes nothing, with two workers in each domain.
class DomainPlansTest : public ::testing::Test {
 protected:
  void begin(const DomainRests& rests, ControllerConfig config = {}) {
    config.rules.global_batch = 80;
    controller_ = std::make_unique<Controller>(config, std::move(*make_solution("none")));
    control::GroupFormed formed;
    for (const WorkerId id : kFour) formed.members.push_back({{id, Attempt{1}}, "h"});
    formed.rests = rests;
    step(formed);
  }
  // The plan is in force, and so much is left.
  void settle(const DomainRests& rests) {
    step(control::PlanTookEffect{controller_->plan().version});
    now_ += seconds(11);
    control::TimePassed tick;
    tick.rests = rests;
    step(tick);
  }
  void step(const control::Input& input) {
    for (control::Effect& effect : effects_of(*controller_, input, now_)) {
      if (auto record = recorded(effect, now_)) records_.push_back(std::move(*record));
    }
  }
  [[nodiscard]] std::vector<std::uint32_t> parts() const {
    std::vector<std::uint32_t> parts;
    for (const wire::PlanEntry& entry : controller_->plan().entries) {
      parts.push_back(share_of(entry));
    }
    return parts;
  }

  MonoTime now_{hours(1)};
  std::unique_ptr<Controller> controller_;
  std::vector<control::RecordAction> records_;
};

TEST_F(DomainPlansTest, TheFirstPlanFollowsTheRecordsOfEachDomain) {
  begin(rests(6000, 2000));
  EXPECT_THAT(parts(), ElementsAre(30, 10, 30, 10));
  settle(rests(6000, 2000));
  settle(rests(3000, 1000));
  EXPECT_TRUE(records_.empty());
}

TEST_F(DomainPlansTest, APlanFollowsWhatIsLeftAndSaysWhy) {
  begin(rests(4000, 4000));
  EXPECT_THAT(parts(), ElementsAre(20, 20, 20, 20));
  settle(rests(3000, 1000));
  EXPECT_THAT(parts(), ElementsAre(30, 10, 30, 10));
  ASSERT_EQ(records_.size(), 1u);
  EXPECT_EQ(records_[0].kind, "adjust-batch");
  EXPECT_EQ(records_[0].target, "w0");
  EXPECT_EQ(records_[0].outcome, ActionOutcome::kApplied);
  EXPECT_THAT(records_[0].reason, HasSubstr("the workers of east have 75 % of the records that are "
                                            "left to train, and of each step 50 %"));
}

TEST_F(DomainPlansTest, AnObserverIsToldOnceAndTheSolutionIsStillAsked) {
  ControllerConfig config;
  config.mode = Mode::kObserve;
  begin(rests(4000, 4000), config);
  settle(rests(3000, 1000));
  settle(rests(3000, 1000));
  EXPECT_THAT(parts(), ElementsAre(20, 20, 20, 20));
  ASSERT_EQ(records_.size(), 1u);
  EXPECT_EQ(records_[0].outcome, ActionOutcome::kObserved);
}

TEST_F(DomainPlansTest, EqualPartsStayEqualWhereNothingMayChange) {
  ControllerConfig config;
  config.rules.adjust = Adjust::kNone;
  begin(rests(6000, 2000), config);
  settle(rests(6000, 2000));
  EXPECT_THAT(parts(), ElementsAre(20, 20, 20, 20));
  EXPECT_TRUE(records_.empty());
}

// Equal devices: a step could only be shorter if samples moved between the domains.
TEST(PinnedClusterTest, NdChangesNothingThatTheDomainsWouldChangeBack) {
  testing::VirtualCluster::Options options;
  options.noise = 0.02;
  options.rests = rests(6'000'000, 4'000'000);
  testing::VirtualCluster cluster(options);
  cluster.run_for(60);
  for (const auto& action : cluster.actions) ADD_FAILURE() << action.reason;
}

TEST(PinnedClusterTest, DdMeasuresSizesWithinTheDomainsPartsAndComesToRest) {
  const testing::VirtualDevice slow{"slow", 256, 0.008, 8, 0.001};
  const testing::VirtualDevice fast{"fast", 64, 0.002, 8, 0.00025};
  testing::VirtualCluster::Options options;
  options.noise = 0.02;
  options.window_s = 2;
  options.solution = "dd";
  options.devices = {slow, fast, slow, fast};
  options.rests = rests(6'000'000, 2'000'000);
  testing::VirtualCluster cluster(options);
  std::set<std::uint32_t> sizes;
  const auto sees = [&] {
    return sizes.insert(cluster.in_force().entries.at(0).micro_batch), false;
  };
  cluster.step();
  cluster.run_until(sees, 120);
  EXPECT_GT(sizes.size(), 2U) << "what it asks to measure is run";
  EXPECT_EQ(cluster.share(0) + cluster.share(2), 768U);
  EXPECT_EQ(cluster.out_of_memory, 0);
  ASSERT_FALSE(cluster.actions.empty());
  EXPECT_THAT(cluster.actions.front().reason, HasSubstr("measures how long"));
  const std::size_t actions = cluster.actions.size();
  cluster.run_for(300);
  EXPECT_LE(cluster.actions.size(), actions + 2) << "it does not come to rest";
}

}  // namespace
}  // namespace antdt::ctl
