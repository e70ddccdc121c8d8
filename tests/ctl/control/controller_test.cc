#include "ctl/control/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "effects_of.h"
#include "tests/ctl/control/virtual_cluster.h"

namespace antdt::ctl {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::w;

// A solution with the same wish at every tick.
class Stubborn final : public Solution {
 public:
  explicit Stubborn(Action action) : action_(std::move(action)) {}
  [[nodiscard]] std::string_view name() const override { return "stubborn"; }
  [[nodiscard]] Decision decide(const ClusterView& /*view*/, MonoTime /*now*/) override {
    return {{action_}, "because"};
  }

 private:
  Action action_;
};

class ControllerTest : public ::testing::Test {
 protected:
  void start(Action wish, ControllerConfig config = {}) {
    config.rules.global_batch = 100;
    controller_ = std::make_unique<Controller>(config, std::make_unique<Stubborn>(std::move(wish)));
    form({{0, 1}, {1, 1}});
  }
  void form(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& members) {
    control::GroupFormed event;
    for (const auto& [index, attempt] : members) {
      event.members.push_back({{w(index), Attempt{attempt}}, "h"});
    }
    step(event);
  }
  void step(const control::Input& event) {
    for (control::Effect& effect : effects_of(*controller_, event, now_)) {
      if (auto* plan = std::get_if<control::SendPlan>(&effect)) plans_.push_back(plan->plan);
      if (auto record = recorded(effect, now_)) records_.push_back(std::move(*record));
      if (auto* perform = std::get_if<control::PerformAction>(&effect))
        performed_.push_back(perform->action);
      if (auto* no = std::get_if<control::RefuseGroup>(&effect))
        impossible_.push_back(no->error.message);
    }
  }
  void settle() {
    step(control::PlanTookEffect{controller_->plan().version});
    now_ += seconds(11);
    step(control::TimePassed{});
  }
  static AdjustBatch parts(std::uint32_t w0, std::uint32_t w1) {
    return {{{w(0), w0}, {w(1), w1}}, w(0)};
  }

  MonoTime now_{hours(1)};
  std::unique_ptr<Controller> controller_;
  std::vector<wire::Plan> plans_;
  std::vector<control::RecordAction> records_;
  std::vector<Action> performed_;
  std::vector<std::string> impossible_;
};

TEST_F(ControllerTest, TheFirstGroupGetsEqualPartsWithAVersionAboveTheLastOne) {
  ControllerConfig config;
  config.last_version = PlanVersion{41};
  start(parts(30, 70), config);
  ASSERT_EQ(plans_.size(), 1u);
  EXPECT_EQ(plans_[0].version.value, 42u);
  EXPECT_EQ(share_of(plans_[0].entries[0]), 50u);
  EXPECT_EQ(share_of(plans_[0].entries[1]), 50u);
}

TEST_F(ControllerTest, NothingIsDecidedBeforeThePlanIsInForceAndSettled) {
  start(parts(30, 70));
  now_ += minutes(1);
  step(control::TimePassed{});
  EXPECT_TRUE(records_.empty());
  step(control::PlanTookEffect{PlanVersion{1}});
  now_ += seconds(9);
  step(control::TimePassed{});
  EXPECT_TRUE(records_.empty());
  now_ += seconds(2);
  step(control::TimePassed{});
  ASSERT_EQ(records_.size(), 1u);
  EXPECT_EQ(records_[0].outcome, ActionOutcome::kApplied);
  EXPECT_EQ(records_[0].kind, "adjust-batch");
  EXPECT_EQ(records_[0].target, "w0");
  ASSERT_EQ(plans_.size(), 2u);
  EXPECT_EQ(plans_[1].version.value, 2u);
  EXPECT_EQ(share_of(plans_[1].entries[0]), 30u);
}

// A program decides at any time; the group's own solution wishes nothing.
class OwnProgramTest : public ControllerTest {
 protected:
  void begin(ControllerConfig config = {}) {
    config.rules.global_batch = 100;
    controller_ = std::make_unique<Controller>(config, std::move(*make_solution("command")));
    form({{0, 1}, {1, 1}});
  }
  void says(const Action& action) {
    step(control::ProgramDecided{{{action}, "it says so"}, controller_->plan().version});
  }
};

TEST_F(OwnProgramTest, ItsDecisionsAreExecutedOnceThePlanHasSettled) {
  begin();
  says(parts(30, 70));
  EXPECT_TRUE(records_.empty()) << "nothing is in force yet";
  settle();
  says(parts(30, 70));
  ASSERT_EQ(records_.size(), 1u);
  EXPECT_EQ(records_[0].outcome, ActionOutcome::kApplied);
  EXPECT_EQ(records_[0].reason, "it says so");
  EXPECT_EQ(share_of(plans_.back().entries[0]), 30u);
}

TEST_F(OwnProgramTest, AnAnswerAboutAnotherPlanIsDropped) {
  begin();
  settle();
  step(control::ProgramDecided{{{parts(30, 70)}, "late"}, PlanVersion{7}});
  EXPECT_TRUE(records_.empty());
}

TEST_F(OwnProgramTest, RepeatedDecisionsWaitUntilTheFirstHasSettled) {
  begin();
  settle();
  for (std::uint32_t count : {1U, 0U, 1U, 0U}) says(BackupWorkers{count});
  EXPECT_EQ(records_.size(), 1u);
  now_ += seconds(5);
  says(BackupWorkers{0});
  EXPECT_EQ(records_.size(), 2u);
}

TEST_F(OwnProgramTest, DrasticActionsOfItAreAdvisedUnlessAllowed) {
  begin();
  settle();
  says(KillRestart{{w(1), Attempt{1}}});
  ASSERT_EQ(records_.size(), 1u);
  EXPECT_EQ(records_[0].outcome, ActionOutcome::kAdvised);
  EXPECT_TRUE(performed_.empty());
}

TEST_F(OwnProgramTest, PartsThatTheRulesForbidAreRefusedWithTheReason) {
  ControllerConfig config;
  config.rules.multiple_of = 8;
  config.rules.global_batch = 96;
  begin(config);
  settle();
  AdjustBatch odd = parts(31, 69);
  for (Share& s : odd.shares) {
    s.micro_batch = s.samples;
    s.accumulation = 1;
  }
  says(odd);
  ASSERT_EQ(records_.size(), 1u);
  EXPECT_EQ(records_[0].outcome, ActionOutcome::kRefused);
}

TEST_F(ControllerTest, APlanThatIsAlreadyInForceIsNotSentAgain) {
  start(parts(30, 70));
  settle();
  settle();
  settle();
  EXPECT_EQ(plans_.size(), 2u);
  EXPECT_EQ(records_.size(), 1u);
}

TEST_F(ControllerTest, AnOlderPlanInForceChangesNothing) {
  start(parts(30, 70));
  settle();
  step(control::PlanTookEffect{PlanVersion{1}});
  now_ += minutes(1);
  step(control::TimePassed{});
  EXPECT_FALSE(controller_->settled(now_));
  EXPECT_EQ(controller_->view().workers[0].share, 50u);
}

class WatchingTest : public ControllerTest,
                     public ::testing::WithParamInterface<std::pair<Mode, ActionOutcome>> {};

TEST_P(WatchingTest, RecordsOnceInAPersistentWindowAndDoesNothing) {
  ControllerConfig config;
  config.mode = GetParam().first;
  start(parts(30, 70), config);
  settle();
  for (int i = 0; i < 40; ++i, now_ += seconds(1)) step(control::TimePassed{});
  ASSERT_EQ(records_.size(), 1u);
  EXPECT_EQ(records_[0].outcome, GetParam().second);
  EXPECT_EQ(plans_.size(), 1u);
  now_ += minutes(2);
  step(control::TimePassed{});
  EXPECT_EQ(records_.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Modes, WatchingTest,
                         ::testing::Values(std::pair{Mode::kObserve, ActionOutcome::kObserved},
                                           std::pair{Mode::kAdvise, ActionOutcome::kAdvised}));

TEST_F(ControllerTest, DrasticActionsAreAdvisedUnlessAllowed) {
  start(KillRestart{{w(1), Attempt{1}}});
  settle();
  ASSERT_EQ(records_.size(), 1u);
  EXPECT_EQ(records_[0].outcome, ActionOutcome::kAdvised);
  EXPECT_EQ(records_[0].target, "w1");
  EXPECT_TRUE(performed_.empty());
}

TEST_F(ControllerTest, AllowedDrasticActionsAreBoundedByTheHour) {
  ControllerConfig config;
  config.allow = {"kill-restart"};
  config.max_actions_per_hour = 2;
  start(KillRestart{{w(1), Attempt{1}}}, config);
  settle();
  for (int i = 0; i < 58; ++i, now_ += minutes(1)) step(control::TimePassed{});
  EXPECT_EQ(performed_.size(), 2u);
  now_ += minutes(5);
  step(control::TimePassed{});
  EXPECT_EQ(performed_.size(), 3u);
}

TEST_F(ControllerTest, WhatCouldNotBeDoneIsNoneOfTheActionsOfTheHour) {
  ControllerConfig config;
  config.allow = {"kill-restart"};
  config.max_actions_per_hour = 2;
  start(KillRestart{{w(1), Attempt{1}}}, config);
  settle();
  for (std::size_t asked = 1; asked < 10; ++asked, now_ += minutes(1)) {
    ASSERT_EQ(performed_.size(), asked);
    step(control::ActionRefused{performed_.back()});
    now_ += minutes(1);
    step(control::TimePassed{});
  }
}

TEST_F(ControllerTest, AnApprovedRecommendationIsExecutedOnce) {
  start(KillRestart{{w(1), Attempt{1}}});
  settle();
  ASSERT_TRUE(controller_->check_approved("kill-restart", "w1"));
  step(control::ActionApproved{"kill-restart", "w1", "ann"});
  ASSERT_EQ(performed_.size(), 1u);
  ASSERT_EQ(records_.size(), 2u);
  EXPECT_EQ(records_[1].outcome, ActionOutcome::kApplied);
  EXPECT_THAT(records_[1].reason, HasSubstr("because (approved by ann)"));
  EXPECT_THAT(controller_->check_approved("kill-restart", "w1").error().message,
              HasSubstr("not advised any more"));
  step(control::ActionApproved{"kill-restart", "w1", "ann"});
  EXPECT_EQ(performed_.size(), 1u);
}

TEST_F(ControllerTest, AnAdviceForAnotherAttemptOrOtherMembersIsNotFollowed) {
  start(KillRestart{{w(1), Attempt{1}}});
  settle();
  form({{0, 1}, {1, 2}});
  EXPECT_THAT(controller_->check_approved("kill-restart", "w1").error().message,
              HasSubstr("attempt 1 of w1 is no member"));
  step(control::ActionApproved{"kill-restart", "w1", "ann"});
  EXPECT_TRUE(performed_.empty());
}

TEST_F(ControllerTest, AnAdvisedBatchIsDealtWhenItIsApproved) {
  ControllerConfig config;
  config.mode = Mode::kAdvise;
  start(parts(30, 70), config);
  settle();
  EXPECT_EQ(plans_.size(), 1u);
  step(control::ActionApproved{"adjust-batch", "w0", "ann"});
  ASSERT_EQ(plans_.size(), 2u);
  EXPECT_EQ(share_of(plans_[1].entries[0]), 30u);
}

TEST_F(ControllerTest, ADecisionThatDoesNotNameTheMembersIsRefusedAndHarmsNothing) {
  start(AdjustBatch{{{w(0), 30}, {w(7), 70}}, w(0)});
  settle();
  ASSERT_EQ(records_.size(), 1u);
  EXPECT_EQ(records_[0].outcome, ActionOutcome::kRefused);
  EXPECT_THAT(records_[0].reason, HasSubstr("gives w1 no part"));
  EXPECT_EQ(plans_.size(), 1u);
}

TEST_F(ControllerTest, ANewGenerationDividesTheSameGlobalBatchAmongItsMembers) {
  start(parts(30, 70));
  settle();
  step(control::PlanTookEffect{PlanVersion{2}});
  form({{0, 1}, {1, 1}, {2, 1}});
  ASSERT_EQ(plans_.size(), 3u);
  const auto& entries = plans_[2].entries;
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(share_of(entries[0]) + share_of(entries[1]) + share_of(entries[2]), 100u);
  EXPECT_LT(share_of(entries[0]), share_of(entries[1])) << "who stays keeps its proportion";
  EXPECT_FALSE(controller_->settled(now_ + minutes(5)));
}

TEST_F(ControllerTest, AWorkerStartedAgainIsANewcomer) {
  start(parts(20, 80));
  settle();
  step(control::PlanTookEffect{PlanVersion{2}});
  form({{0, 2}, {1, 1}});
  EXPECT_EQ(share_of(plans_.back().entries[0]), 50u);
}

class RestartTimeTest : public ControllerTest {
 protected:
  // w1 is started again by order of the solution, or not by order.
  void begin(bool by_order) {
    ControllerConfig config;
    if (by_order) config.allow = {"kill-restart"};
    start(KillRestart{{w(1), Attempt{1}}}, config);
    settle();
    ASSERT_EQ(performed_.size(), by_order ? 1U : 0U);
  }
  void sees(const std::vector<Attempt>& of_w1) {
    control::AttemptsSeen seen{{{w(0), Attempt{1}}}};
    for (const Attempt attempt : of_w1) seen.attempts.push_back({w(1), attempt});
    step(seen);
  }
  std::optional<Duration> seen_when_it_trains() {
    form({{0, 1}, {1, 2}});
    step(control::PlanTookEffect{controller_->plan().version});
    step(control::TimePassed{});
    return controller_->view().restart_time;
  }
};

TEST_F(RestartTimeTest, IsFromTheOrderUntilTheNextAttemptTrains) {
  begin(true);
  sees({Attempt{2}});
  now_ += seconds(5);
  form({{0, 1}});
  sees({Attempt{2}});
  now_ += seconds(15);
  EXPECT_EQ(seen_when_it_trains(), seconds(20));
}

TEST_F(RestartTimeTest, OfAWorkerThatFailedIsFromTheGroupWithoutIt) {
  begin(false);
  form({{0, 1}});
  sees({Attempt{2}});
  now_ += seconds(15);
  EXPECT_EQ(seen_when_it_trains(), seconds(15));
}

TEST_F(RestartTimeTest, OfAWorkerThatIsInTheNextGroupAlreadyIsNotKnown) {
  begin(false);
  EXPECT_EQ(seen_when_it_trains(), std::nullopt);
}

TEST_F(RestartTimeTest, DoesNotIncludeTheTimeForWhichAWorkerIsRemovedOrWaitsForRoom) {
  begin(true);
  sees({});
  form({{0, 1}});
  sees({});
  now_ += hours(48);
  sees({Attempt{2}});
  EXPECT_EQ(seen_when_it_trains(), std::nullopt);
}

TEST_F(RestartTimeTest, DoesNotBeginWithARestartThatWasRefused) {
  begin(true);
  sees({Attempt{1}});
  now_ += hours(48);
  sees({Attempt{2}});
  EXPECT_EQ(seen_when_it_trains(), std::nullopt);
}

TEST_F(ControllerTest, ABatchThatDoesNotFitTheGroupIsReported) {
  ControllerConfig config;
  config.rules.min = 60;
  start(parts(30, 70), config);
  ASSERT_EQ(impossible_.size(), 1u);
  EXPECT_THAT(impossible_[0], HasSubstr("at least 60"));
  EXPECT_TRUE(plans_.empty());
  step(control::TimePassed{});
  EXPECT_TRUE(controller_->view().workers.empty());
}

TEST(ControllerModes, UnknownNamesAreErrorsThatListTheKnownOnes) {
  EXPECT_THAT(parse_mode("do").error().message, HasSubstr("advise"));
  EXPECT_THAT(make_solution("magic").error().message, HasSubstr("\"nd\""));
  EXPECT_EQ(make_solution("dds").value()->name(), "dds");
}

TEST(ControllerScale, TenThousandWorkersAreDecidedUpon) {
  ControllerConfig config;
  config.rules.global_batch = 1'000'000;
  Controller controller(config, make_solution("nd").value());
  MonoTime now{hours(1)};
  control::GroupFormed formed;
  for (std::uint32_t i = 0; i < 10000; ++i) formed.members.push_back({{w(i), Attempt{1}}, "h"});
  ASSERT_EQ(effects_of(controller, formed, now).size(), 1u);
  ASSERT_TRUE(effects_of(controller, control::PlanTookEffect{PlanVersion{1}}, now).empty());
  for (int s = 0; s < 20; ++s) {
    now += seconds(1);
    for (std::uint32_t i = 0; i < 10000; ++i) {
      wire::Report r;
      r.batches = 2;
      r.samples = 200;
      r.compute_us = i % 100 == 0 ? 1'500'000 : 500'000;
      ASSERT_TRUE(
          effects_of(controller, control::MetricsReported{{{w(i), Attempt{1}}, {r, 1000}}}, now)
              .empty());
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  (void)effects_of(controller, control::TimePassed{}, now);
  const auto effects = effects_of(controller, control::TimePassed{}, now + seconds(1));
  const double each_s = to_seconds(std::chrono::steady_clock::now() - begin) / 2;
  EXPECT_EQ(effects.size(), 2u);
  // Not asserted: how long it takes depends on the machine and the build.
  RecordProperty("milliseconds_a_tick", static_cast<int>(1000 * each_s));
  fmt::print("a tick over 10,000 workers: {:.1f} ms\n", 1000 * each_s);
}

TEST_F(ControllerTest, AnotherLearningRateComesWithAPlanOfItsOwnAndStays) {
  start(AdjustLearningRate{0.5});
  EXPECT_EQ(plans_.back().rate, 1);
  settle();
  ASSERT_EQ(plans_.size(), 2u);
  EXPECT_EQ(plans_[1].rate, 0.5);
  EXPECT_EQ(plans_[1].version, plans_[0].version.next());
  EXPECT_EQ(share_of(plans_[1].entries[0]), share_of(plans_[0].entries[0]));
  ASSERT_EQ(records_.size(), 1u);
  EXPECT_EQ(records_[0].kind, "adjust-learning-rate");
  EXPECT_EQ(records_[0].target, "job");
  EXPECT_EQ(records_[0].outcome, ActionOutcome::kApplied);
  EXPECT_TRUE(performed_.empty());
  settle();
  EXPECT_EQ(plans_.size(), 2u) << "it is so already";
  EXPECT_EQ(controller_->view().learning_rate, 0.5);
  form({{0, 1}, {1, 2}});
  EXPECT_EQ(plans_.back().rate, 0.5) << "who comes later hears of it";
}

TEST_F(ControllerTest, TheNextIncarnationKeepsTheLearningRate) {
  ControllerConfig config;
  config.rate = 0.25;
  start(parts(30, 70), config);
  EXPECT_EQ(plans_.back().rate, 0.25);
  settle();
  EXPECT_EQ(plans_.back().rate, 0.25);
}

TEST_F(ControllerTest, AnInvalidLearningRateIsRefusedOnce) {
  for (const double none : {0.0, -1.0, 1e9, std::numeric_limits<double>::quiet_NaN()}) {
    records_.clear();
    plans_.clear();
    start(AdjustLearningRate{none});
    settle();
    now_ += seconds(1);
    step(control::TimePassed{});
    ASSERT_EQ(records_.size(), 1u) << none;
    EXPECT_EQ(records_[0].outcome, ActionOutcome::kRefused);
    EXPECT_EQ(plans_.size(), 1u);
  }
}

ControllerConfig with_threshold(double threshold) {
  ControllerConfig config;
  config.threshold = threshold;
  return config;
}

TEST_F(ControllerTest, AnotherThresholdComesWithAPlanOfItsOwnAndStays) {
  start(SetSync{0.05}, with_threshold(0.2));
  EXPECT_EQ(plans_.back().threshold, std::nullopt) << "that of the job";
  EXPECT_EQ(controller_->threshold(), 0.2);
  settle();
  ASSERT_EQ(plans_.size(), 2u);
  EXPECT_EQ(plans_[1].threshold, 0.05);
  EXPECT_EQ(plans_[1].version, plans_[0].version.next());
  EXPECT_EQ(share_of(plans_[1].entries[0]), share_of(plans_[0].entries[0]));
  ASSERT_EQ(records_.size(), 1u);
  EXPECT_EQ(records_[0].kind, "set-sync");
  EXPECT_EQ(records_[0].outcome, ActionOutcome::kApplied);
  EXPECT_EQ(controller_->threshold(), 0.05);
  EXPECT_EQ(controller_->job_threshold(), 0.2);
  settle();
  EXPECT_EQ(plans_.size(), 2u) << "it is so already";
  EXPECT_EQ(controller_->view().threshold, 0.05);
  form({{0, 1}, {1, 2}});
  EXPECT_EQ(plans_.back().threshold, 0.05) << "who comes later hears of it";
}

TEST_F(ControllerTest, TheNextIncarnationKeepsTheThresholdAlsoWhileThereIsNoGroup) {
  ControllerConfig config = with_threshold(0.2);
  config.planned_threshold = 0.05;
  config.last_version = PlanVersion{7};
  config.rate = 0.5;
  const Controller alone(config, std::make_unique<Stubborn>(SetSync{0.05}));
  EXPECT_EQ(alone.plan().threshold, 0.05);
  EXPECT_EQ(alone.plan().rate, 0.5);
  EXPECT_EQ(alone.plan().version, PlanVersion{7});
  start(SetSync{0.05}, config);
  EXPECT_EQ(plans_.back().threshold, 0.05);
  EXPECT_EQ(plans_.back().version, PlanVersion{8});
}

TEST_F(ControllerTest, AThresholdThatCannotBeIsRefusedOnceWithTheReason) {
  const auto refused = [this](double wanted, const ControllerConfig& config) {
    records_.clear();
    plans_.clear();
    start(SetSync{wanted}, config);
    settle();
    now_ += seconds(1);
    step(control::TimePassed{});
    EXPECT_EQ(plans_.size(), 1u);
    if (records_.size() != 1u) return fmt::format("{} records", records_.size());
    EXPECT_EQ(records_[0].outcome, ActionOutcome::kRefused);
    return records_[0].reason;
  };
  for (const double none : {-1.0, 2e6, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(refused(none, with_threshold(0.2)), HasSubstr("a threshold is from 0 to 1000000"));
  }
  EXPECT_THAT(refused(0.05, {}), HasSubstr("only trainer.sync = \"gaia\" has a threshold"));
}

// A solution that wants a larger threshold after each visit.
class Visited final : public Solution {
 public:
  explicit Visited(bool looks) : looks_(looks) {}
  [[nodiscard]] std::string_view name() const override { return "visited"; }
  [[nodiscard]] bool looks_at_visits() const override { return looks_; }
  [[nodiscard]] Decision decide(const ClusterView& view, MonoTime /*now*/) override {
    if (!view.visit) return {};
    return {{SetSync{2 * view.threshold.value()}}, "because"};
  }

 private:
  bool looks_;
};

TEST_F(ControllerTest, ASolutionThatLooksAtVisitsIsAskedAtEachNewOneAndNotInBetween) {
  ControllerConfig config = with_threshold(0.1);
  config.rules.global_batch = 100;
  controller_ = std::make_unique<Controller>(config, std::make_unique<Visited>(true));
  form({{0, 1}, {1, 1}});
  wire::Visit visit{.step = Step{50}, .threshold = 0.1};
  step(control::VisitTold{visit});
  EXPECT_EQ(plans_.size(), 1u) << "the first plan is not in force yet";
  step(control::PlanTookEffect{controller_->plan().version});
  step(control::VisitTold{visit});
  EXPECT_EQ(plans_.size(), 1u) << "the same visit";
  visit.step = Step{100};
  step(control::VisitTold{visit});
  ASSERT_EQ(plans_.size(), 2u) << "at once";
  EXPECT_EQ(plans_.back().threshold, 0.2);
  settle();
  EXPECT_EQ(plans_.size(), 2u) << "no visit since";
}

}  // namespace
}  // namespace antdt::ctl
