// Which members mix with which in each step of DS-Sync.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/sanitized.h"
#include "trainer/sync/ds_sync/groups.h"

namespace antdt::sync::ds_sync {
namespace {

using ::testing::ElementsAre;

std::vector<std::uint32_t> numbers_to(std::uint32_t most) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t n = 1; n <= most; ++n) all.push_back(n);
  return all;
}

// How often each two members are in one group in steps [from, from + steps).
std::vector<std::vector<int>> meetings(const GroupSchedule& schedule, std::uint64_t from,
                                       std::uint32_t steps) {
  const std::uint32_t n = schedule.members();
  std::vector<std::vector<int>> met(n, std::vector<int>(n, 0));
  for (std::uint64_t s = from; s < from + steps; ++s) {
    for (const auto& group : schedule.groups(Step{s})) {
      for (const std::uint32_t a : group) {
        for (const std::uint32_t b : group) ++met[a][b];
      }
    }
  }
  return met;
}

// How much of each member's replica is in each other's after steps [from, from + steps).
std::vector<std::vector<double>> mixed(const GroupSchedule& schedule, std::uint64_t from,
                                       std::uint32_t steps) {
  const std::uint32_t n = schedule.members();
  std::vector<std::vector<double>> part(n, std::vector<double>(n, 0));
  for (std::uint32_t i = 0; i < n; ++i) part[i][i] = 1;
  for (std::uint64_t s = from; s < from + steps; ++s) {
    for (const auto& group : schedule.groups(Step{s})) {
      std::vector<double> mean(n, 0);
      for (const std::uint32_t rank : group) {
        for (std::uint32_t i = 0; i < n; ++i) {
          mean[i] += part[rank][i] / static_cast<double>(group.size());
        }
      }
      for (const std::uint32_t rank : group) part[rank] = mean;
    }
  }
  return part;
}

TEST(DsSyncGroups, EveryMemberIsInOneGroupOfEachStepAndNobodyIsAlone) {
  for (const std::uint32_t n : numbers_to(150)) {
    const GroupSchedule schedule(n, 7);
    for (std::uint64_t s = 0; s < schedule.cycle(); ++s) {
      std::vector<int> times(n, 0);
      for (const auto& group : schedule.groups(Step{s})) {
        EXPECT_TRUE(std::ranges::is_sorted(group));
        EXPECT_TRUE(group.size() > 1 || n == 1) << n << " members, step " << s;
        for (const std::uint32_t rank : group) ++times.at(rank);
      }
      EXPECT_EQ(times, std::vector<int>(n, 1)) << n << " members, step " << s;
    }
  }
}

// All machines must form the same groups, and so must a later version in a mixed cluster.
TEST(DsSyncGroups, TheGroupsFollowFromTheNumberOfMembersTheSeedAndTheStep) {
  const GroupSchedule schedule(9, 1);
  EXPECT_EQ(schedule.groups(Step{5}), GroupSchedule(9, 1).groups(Step{5}));
  EXPECT_EQ(schedule.groups(Step{5}), schedule.groups(Step{5 + schedule.cycle()}));
  EXPECT_NE(schedule.groups(Step{5}), GroupSchedule(9, 2).groups(Step{5}));
  EXPECT_THAT(schedule.groups(Step{0}),
              ElementsAre(ElementsAre(0, 1, 3), ElementsAre(2, 5, 8), ElementsAre(4, 6, 7)));
}

TEST(DsSyncGroups, EveryTwoMembersMeetInEachCycle) {
  for (const std::uint32_t n : numbers_to(90)) {
    const GroupSchedule schedule(n, n);
    const auto met = meetings(schedule, 3, schedule.cycle());
    for (const auto& row : met) EXPECT_GE(std::ranges::min(row), 1) << n << " members";
  }
}

TEST(DsSyncGroups, InAFullGridEveryTwoMembersMeetOnceInACycle) {
  for (const std::uint32_t side : {2U, 3U, 4U, 5U, 7U, 8U, 11U, 16U, 32U}) {
    const GroupSchedule schedule(side * side, 3);
    ASSERT_EQ(schedule.cycle(), side + 1);
    const auto met = meetings(schedule, 0, schedule.cycle());
    for (std::size_t a = 0; a < met.size(); ++a) {
      for (std::size_t b = 0; b < met.size(); ++b) {
        ASSERT_EQ(met[a][b], a == b ? int(side + 1) : 1) << side << ": " << a << ", " << b;
      }
    }
  }
}

TEST(DsSyncGroups, InAFullGridAnyTwoSuccessiveStepsMixEverything) {
  for (const std::uint32_t side : {2U, 3U, 4U, 5U, 8U}) {
    const GroupSchedule schedule(side * side, 9);
    for (std::uint64_t s = 0; s <= schedule.cycle(); ++s) {
      for (const auto& row : mixed(schedule, s, 2)) {
        for (const double part : row) ASSERT_NEAR(part, 1.0 / (side * side), 1e-12) << side;
      }
    }
  }
}

TEST(DsSyncGroups, AnUpdateReachesEveryReplicaInFourStepsAndAllEquallyInAFewMore) {
  double furthest = 0;
  for (const std::uint32_t n : numbers_to(90)) {
    const GroupSchedule schedule(n, n);
    for (std::uint64_t s = 0; s < schedule.cycle(); ++s) {
      for (const auto& row : mixed(schedule, s, 4)) EXPECT_GT(std::ranges::min(row), 0) << n;
      for (const auto& row : mixed(schedule, s, 6)) {
        for (const double part : row) furthest = std::max(furthest, std::abs(part * n - 1));
      }
    }
  }
  RecordProperty("percent_from_the_mean", std::to_string(100 * furthest));
  EXPECT_LT(furthest, 0.2);
}

TEST(DsSyncGroups, GroupsHaveAboutTheSquareRootOfTheMembers) {
  for (const std::uint32_t n : numbers_to(all_or_some(1500U, 400U))) {
    const GroupSchedule schedule(n, 1);
    const double root = std::sqrt(n);
    for (std::uint64_t s = 0; s < schedule.cycle(); s += 3) {
      for (const auto& group : schedule.groups(Step{s})) {
        EXPECT_LE(static_cast<double>(group.size()), 1.4 * root + 1) << n << " members";
      }
    }
    // All but the columns.
    std::vector<std::size_t> sizes;
    for (const auto& group : schedule.groups(Step{0})) sizes.push_back(group.size());
    EXPECT_LE(std::ranges::max(sizes), std::ranges::min(sizes) + 1) << n << " members";
  }
}

TEST(Field, HasAllLawsOfAField) {
  EXPECT_EQ(Field::order_for(16), 4U);
  EXPECT_EQ(Field::order_for(17), 5U);
  EXPECT_EQ(Field::order_for(65), 11U);  // nine is a power of three
  EXPECT_FALSE(Field::exists(9));
  for (const std::uint32_t q : {2U, 4U, 7U, 8U, 16U, 32U}) {
    const Field field(q);
    const auto plus = [&](std::uint32_t a, std::uint32_t b) {
      return field.minus(a, field.minus(0, b));
    };
    for (std::uint32_t a = 0; a < q; ++a) {
      EXPECT_EQ(field.times(1, a), a);
      std::vector<bool> quotient(q, false);
      for (std::uint32_t b = 0; b < q; ++b) {
        quotient[field.times(a, b)] = true;
        EXPECT_EQ(field.times(a, b), field.times(b, a));
        EXPECT_EQ(plus(a, b), plus(b, a));
        for (std::uint32_t c = 0; c < q; ++c) {
          ASSERT_EQ(field.times(a, plus(b, c)), plus(field.times(a, b), field.times(a, c)));
          ASSERT_EQ(field.times(a, field.times(b, c)), field.times(field.times(a, b), c));
        }
      }
      EXPECT_TRUE(a == 0 || std::ranges::find(quotient, false) == quotient.end()) << q << ": " << a;
    }
  }
  // The larger ones: no product of two elements other than 0 is 0.
  for (const std::uint32_t q : {64U, 128U, 256U, 512U, 1024U}) {
    const Field field(q);
    for (std::uint32_t a = 1; a < q; ++a) {
      for (std::uint32_t b = 1; b < q; ++b) ASSERT_NE(field.times(a, b), 0U) << q;
    }
  }
}

}  // namespace
}  // namespace antdt::sync::ds_sync
