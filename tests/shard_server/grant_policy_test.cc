#include "shard_server/ledger/grant_policy.h"

#include <gtest/gtest.h>

namespace antdt::shard_server {
namespace {

TEST(GrantPolicyTest, FarFromTheEndAMemberGetsWhatItWants) {
  EXPECT_EQ(grant_size(5000, {0, 256, 0}, {1'000'000, 0, 4, 1024}), 5000U);
  EXPECT_EQ(grant_size(5000, {0, 0, 0}, {1'000'000, 0, 4, 0}), 5000U);
}

TEST(GrantPolicyTest, NearTheEndGrantsAreCutByShareInWholeSteps) {
  // 1000 left, of which this member computes a quarter: 250, in steps of 100.
  EXPECT_EQ(grant_size(5000, {0, 100, 0}, {1000, 0, 4, 400}), 300U);
  EXPECT_EQ(grant_size(5000, {200, 100, 0}, {600, 400, 4, 400}), 100U);
  EXPECT_EQ(grant_size(5000, {300, 100, 0}, {600, 400, 4, 400}), 0U);
}

TEST(GrantPolicyTest, AFastMemberIsLeftMoreThanASlowOne) {
  EXPECT_EQ(fair_need({0, 300, 0}, {1200, 0, 2, 400}), 900U);
  EXPECT_EQ(fair_need({0, 100, 0}, {1200, 0, 2, 400}), 300U);
}

TEST(GrantPolicyTest, AWorkerThatHoldsNothingAlwaysGetsRecordsWhileThereAreSome) {
  for (std::uint64_t left = 1; left < 2000; ++left) {
    EXPECT_GT(grant_size(500, {0, 1, 0}, {left, 0, 2, 1001}), 0U);
    EXPECT_GT(grant_size(500, {0, 0, 0}, {left, 0, 64, 0}), 0U);
  }
}

TEST(GrantPolicyTest, TheTargetHoldBoundsAGrant) {
  EXPECT_EQ(grant_size(1'000'000, {0, 100, 1000}, {1'000'000, 0, 4, 400}), 1700U);
  EXPECT_EQ(grant_size(1'000'000, {1500, 100, 1000}, {1'000'000, 0, 4, 400}), 200U);
}

TEST(GrantPolicyTest, WithoutSharesTheGrantsAtTheEndGetSmallerAndSmaller) {
  EXPECT_EQ(grant_size(1000, {0, 0, 0}, {800, 0, 4, 0}), 100U);
  EXPECT_EQ(grant_size(1000, {0, 0, 0}, {8, 0, 4, 0}), 1U);
}

TEST(GrantPolicyTest, OnlyAClearSurplusIsRecalled) {
  const PhaseNeed phase{0, 1000, 4, 400};  // 250 each, in steps of 100: 300
  EXPECT_EQ(surplus({1000, 100, 0}, phase), 700U);
  EXPECT_EQ(surplus({400, 100, 0}, phase), 0U);  // a step more is not worth it
  EXPECT_EQ(surplus({300, 100, 0}, phase), 0U);
}

TEST(GrantPolicyTest, HugeNumbersDoNotOverflow) {
  const PhaseNeed phase{1ULL << 61, 0, 2, 2ULL << 40};
  EXPECT_GT(fair_need({0, 1ULL << 40, 0}, phase), 1ULL << 59);
}

}  // namespace
}  // namespace antdt::shard_server
