#include "ctl/control/memory_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::ctl {
namespace {

using ::testing::HasSubstr;

WorkerId id_of(std::uint32_t index) { return {'w', index}; }

BatchRules rules_of(std::uint32_t global_batch) {
  BatchRules rules;
  rules.global_batch = global_batch;
  return rules;
}

wire::Plan plan_of(const std::vector<std::uint32_t>& parts) {
  wire::Plan plan{PlanVersion{1}, {}};
  for (std::uint32_t i = 0; i < parts.size(); ++i) plan.entries.push_back({id_of(i), parts[i], 1});
  return plan;
}

TEST(MemoryLimits, APartThatIsTooLargeIsCutAndStaysWhatItIs) {
  const auto plan = within_memory(plan_of({512, 512}), {{id_of(1), 64}}, rules_of(1024));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->entries[0].micro_batch, 512u);
  EXPECT_EQ(plan->entries[1].micro_batch, 64u);
  EXPECT_EQ(plan->entries[1].accumulation, 8u);
}

TEST(MemoryLimits, PartsThatHaveNoSuchDivisorMoveALittle) {
  const MemoryLimits limits{{id_of(0), 64}, {id_of(1), 64}, {id_of(2), 200}};
  const auto rules = rules_of(1021 + 1019 + 1013);
  const auto plan = within_memory(plan_of({1021, 1019, 1013}), limits, rules);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(check_plan(*plan, limits, rules));
  for (const wire::PlanEntry& e : plan->entries) EXPECT_NEAR(share_of(e), 1018, 40);
}

TEST(MemoryLimits, MicroBatchesThatMayNotBeCutMoveToOthers) {
  auto rules = rules_of(1024);
  rules.adjust = Adjust::kSize;
  const auto plan = within_memory(plan_of({512, 512}), {{id_of(1), 64}}, rules);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->entries[0].micro_batch, 960u);
  EXPECT_EQ(plan->entries[1].micro_batch, 64u);
}

TEST(MemoryLimits, ABatchThatNoWorkerCanHoldIsAnErrorThatSaysWhatToDo) {
  auto rules = rules_of(1024);
  rules.adjust = Adjust::kSize;
  const auto size = within_memory(plan_of({512, 512}), {{id_of(0), 64}, {id_of(1), 64}}, rules);
  ASSERT_FALSE(size);
  EXPECT_THAT(size.error().message, HasSubstr("adjust = \"both\""));
  rules.adjust = Adjust::kNone;
  const auto none = within_memory(plan_of({512, 512}), {{id_of(1), 64}}, rules);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("w1 cannot hold micro-batches of 512 samples"));
}

TEST(MemoryLimits, APlanIsCheckedForItsSumItsMultiplesItsMemoryAndTheRules) {
  auto rules = rules_of(96);
  rules.multiple_of = 4;
  const auto problem = [&](std::uint32_t b0, std::uint32_t c0, std::uint32_t b1, std::uint32_t c1,
                           const MemoryLimits& limits = {}) {
    const wire::Plan plan{PlanVersion{1}, {{id_of(0), b0, c0}, {id_of(1), b1, c1}}};
    const Status status = check_plan(plan, limits, rules);
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(problem(16, 2, 64, 1), "");
  EXPECT_THAT(problem(16, 2, 32, 1), HasSubstr("add up to 64 samples"));
  EXPECT_THAT(problem(18, 2, 60, 1), HasSubstr("multiple_of"));
  EXPECT_THAT(problem(32, 0, 96, 1), HasSubstr("multiple_of"));
  EXPECT_THAT(problem(16, 2, 64, 1, {{id_of(1), 32}}), HasSubstr("cannot hold"));
  rules.adjust = Adjust::kSize;
  EXPECT_THAT(problem(16, 2, 64, 1), HasSubstr("adjust"));
}

}  // namespace
}  // namespace antdt::ctl
