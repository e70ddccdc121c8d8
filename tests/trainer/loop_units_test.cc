// Slots, agreement, the time account, and what is read of a job's
// configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "trainer/loop/hop_timer.h"
#include "trainer/loop/step_slot.h"
#include "trainer/loop/time_account.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

StepSlot slot(std::uint64_t place, std::uint32_t records, std::uint64_t plan,
              std::uint64_t checkpoint) {
  StepSlot s;
  s.place = place;
  s.records = records;
  s.weight = records;
  s.loss = 0.5 * records;
  s.plan = PlanVersion{plan};
  s.checkpoint = checkpoint;
  return s;
}

TEST(StepSlot, SurvivesItsEncoding) {
  StepSlot sent = slot(0x0123'4567'89ab'cdef, 0xfedc'ba98, 7, 3);
  sent.weight = 0.1;
  sent.loss = -1e300;
  for (const bool flag : {false, true}) {
    sent.has_data = flag;
    sent.leaving = !flag;
    sent.all_well = flag;
    sent.wants_hop = !flag;
    EXPECT_EQ(decode_step_slot(encode(sent)), sent);
  }
}

TEST(StepSlot, IsLittleEndianOnTheWire) {
  const StepSlotBytes bytes = encode(slot(0x0102, 1, 0, 0));
  EXPECT_EQ(bytes[0], std::byte{0x02});
  EXPECT_EQ(bytes[1], std::byte{0x01});
}

TEST(Agreement, AddsRecordsAndTakesWhatEveryoneHolds) {
  const std::vector<StepSlot> slots{slot(100, 60, 4, 2), slot(50, 0, 3, 1), slot(70, 40, 5, 2)};
  const Agreement agreed = agree(slots);
  EXPECT_EQ(agreed.records, 100U);
  EXPECT_DOUBLE_EQ(agreed.weight, 100);
  EXPECT_DOUBLE_EQ(agreed.loss, 50);
  EXPECT_EQ(agreed.plan, PlanVersion{}) << "a plan that somebody lacks is not switched to";
  EXPECT_EQ(agreed.checkpoint, 1U) << "an order that somebody lacks is not followed yet";
  EXPECT_THAT(agreed.places, ::testing::ElementsAre(100, 50, 70));
  EXPECT_TRUE(agreed.applies());
}

TEST(Agreement, APlanIsSwitchedToWhenItIsTheNewestOfEveryone) {
  EXPECT_EQ(agree(std::vector<StepSlot>{slot(1, 1, 4, 0), slot(1, 1, 4, 0)}).plan, PlanVersion{4});
  // The second may have missed version 4.
  EXPECT_EQ(agree(std::vector<StepSlot>{slot(1, 1, 4, 0), slot(1, 1, 5, 0)}).plan, PlanVersion{});
}

TEST(Agreement, AStepWithoutRecordsAppliesNothing) {
  const std::vector<StepSlot> slots{slot(100, 0, 1, 0), slot(50, 0, 1, 0)};
  EXPECT_FALSE(agree(slots).applies());
}

TEST(Agreement, AStepThatOneMemberCannotApplyIsAppliedByNobody) {
  std::vector<StepSlot> slots{slot(100, 10, 1, 0), slot(50, 10, 1, 0)};
  slots[1].all_well = false;
  EXPECT_FALSE(agree(slots).applies());
}

TEST(Agreement, OneMemberThatLeavesIsKnownToAll) {
  std::vector<StepSlot> slots{slot(100, 10, 1, 0), slot(50, 10, 1, 0)};
  EXPECT_FALSE(agree(slots).any_leaving);
  slots[1].leaving = true;
  EXPECT_TRUE(agree(slots).any_leaving);
}

TEST(Agreement, HopsAreMeasuredWhenEverybodyWantsIt) {
  std::vector<StepSlot> slots{slot(100, 10, 1, 0), slot(50, 10, 1, 0)};
  slots[0].wants_hop = true;
  EXPECT_FALSE(agree(slots).measure_hop);
  slots[1].wants_hop = true;
  EXPECT_TRUE(agree(slots).measure_hop);
}

TEST(HopTimer, AMemberThatWaitsWantsItsHopMeasuredNowAndThen) {
  const MonoTime start{std::chrono::hours(1)};
  HopTimer timer(start);
  const auto at = [&](int ms) { return start + milliseconds(ms); };
  timer.waited(milliseconds(30), at(299));
  EXPECT_FALSE(timer.wants(at(300))) << "it waits a tenth of the time, and less so far";
  timer.waited(milliseconds(200), at(600));
  EXPECT_TRUE(timer.wants(at(600)));
  timer.measured(at(600), at(700));
  EXPECT_FALSE(timer.wants(at(900)));
  timer.waited(milliseconds(500), at(1200));
  EXPECT_FALSE(timer.wants(at(1199))) << "measuring takes a sixth at most";
  EXPECT_TRUE(timer.wants(at(1200)));
}

TEST(HopTimer, WhoBeginsToWaitAfterALongTimeWantsItAtOnce) {
  const MonoTime start{std::chrono::hours(1)};
  HopTimer timer(start);
  MonoTime now = start;
  const auto step = [&](int computing, int waiting) {
    now += milliseconds(computing + waiting);
    timer.waited(milliseconds(waiting), now);
  };
  for (int i = 0; i < 1000; ++i) step(20, 1);
  EXPECT_FALSE(timer.wants(now));
  for (int i = 0; i < 5; ++i) step(20, 20);
  EXPECT_TRUE(timer.wants(now));
  for (int i = 0; i < 50; ++i) step(20, 1);
  EXPECT_FALSE(timer.wants(now)) << "and no longer when that is over";
}

TEST(Agreement, IsTheSameFromGatheredBytes) {
  const std::vector<StepSlot> slots{slot(9, 4, 2, 1), slot(8, 3, 2, 1)};
  std::vector<std::byte> bytes;
  for (const StepSlot& s : slots) {
    const StepSlotBytes one = encode(s);
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  const Agreement agreed = agree_bytes(bytes);
  EXPECT_EQ(agreed.records, 7U);
  EXPECT_THAT(agreed.places, ::testing::ElementsAre(9, 8));
}

TEST(TimeAccount, CategoriesAddUpToTheTimeSinceTheStart) {
  ManualClock clock;
  clock.advance(seconds(5));
  const MonoTime began = clock.now() - seconds(2);
  TimeAccount account(clock, began);
  clock.advance(seconds(1));
  account.enter(TimeUse::kData);
  clock.advance(milliseconds(300));
  {
    const Timed computing(account, TimeUse::kCompute);
    clock.advance(milliseconds(500));
    {
      const Timed waiting(account, TimeUse::kCollectiveWait);
      clock.advance(milliseconds(200));
    }
    clock.advance(milliseconds(10));
  }
  clock.advance(milliseconds(40));
  EXPECT_EQ(account.spent(TimeUse::kStartup), seconds(3));
  EXPECT_EQ(account.spent(TimeUse::kCompute), milliseconds(510));
  EXPECT_EQ(account.spent(TimeUse::kCollectiveWait), milliseconds(200));
  EXPECT_EQ(account.spent(TimeUse::kData), milliseconds(340));
  const wire::TimeAccount s = account.seconds();
  EXPECT_NEAR(s.compute + s.data + s.collective_wait + s.shard_wait + s.reconfigure + s.checkpoint +
                  s.startup + s.other,
              to_seconds(account.total()), 1e-9);
}

const MonoTime kLoaded = SteadyClock().now();

TEST(TimeAccount, TheProcessStartedBeforeNowAndNotLongBeforeItWasLoaded) {
  const SteadyClock clock;
  const MonoTime started = process_start(clock.now());
  EXPECT_LE(started, clock.now());
  // However long this program has been running.
  EXPECT_LT(kLoaded - started, std::chrono::minutes(10));
}

constexpr auto kConfig = R"({
  "job": {"seed": 9}, "cluster": {"hosts": ["10.0.0.1:7700"], "interface": "eth3"},
  "batch": {"global": 512},
  "trainer": {"model": "mlp", "optimizer": "sgd", "lr": 0.5, "momentum": 0.9,
              "weight_decay": 0.01, "embedding_dim": 4, "hidden": [10, 20],
              "cin_layers": [7, 6, 5], "bottom_hidden": [], "threads": 2},
  "inject": [{"workers": ["w1"], "slowdown": 2.0}]})";

TEST(TrainerConfig, ReadsItsPartOfTheJobsConfiguration) {
  const auto config = parse_trainer_config(kConfig);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->seed, 9U);
  EXPECT_EQ(config->model, "mlp");
  EXPECT_EQ(config->optimizer, "sgd");
  EXPECT_DOUBLE_EQ(config->learning_rate, 0.5);
  EXPECT_DOUBLE_EQ(config->momentum, 0.9);
  EXPECT_DOUBLE_EQ(config->weight_decay, 0.01);
  EXPECT_EQ(config->embedding_dim, 4U);
  EXPECT_THAT(config->hidden, ::testing::ElementsAre(10, 20));
  EXPECT_THAT(config->cin_layers, ::testing::ElementsAre(7, 6, 5));
  EXPECT_THAT(config->bottom_hidden, ::testing::IsEmpty());
  EXPECT_EQ(config->threads, 2U);
  EXPECT_EQ(config->global_batch, 512U);
  EXPECT_EQ(config->interface, "eth3");
  EXPECT_THAT(config->hosts, ::testing::ElementsAre("10.0.0.1:7700"));
}

TEST(TrainerConfig, WhatIsNotJsonOrOfTheWrongTypeIsAnError) {
  EXPECT_FALSE(parse_trainer_config("{"));
  const auto wrong = parse_trainer_config(R"({"trainer": {"lr": "fast"}})");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace antdt::trainer
