// What was tried for mixing replicas (bench/replicas/rules.h), on a model of one number and a table
// of three rows of two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/replicas/rules.h"
#include "bench/replicas/task.h"
#include "bench/replicas/ways.h"

namespace antdt::bench::replicas {
namespace {

using testing::ElementsAre;
using Floats = std::vector<float>;

constexpr Table kTable{.first = 1, .rows = 3, .width = 2};

// Two members, of which the first has changed rows 0 and 1 since they last mixed, and the second
// row 1; each keeps one array more.
struct Two {
  Floats before_a{0, 1, 1, 2, 2, 3, 3}, before_b{0, 1, 1, 4, 4, 5, 5};
  Floats a{2, 9, 1, 6, 2, 3, 3}, b{4, 1, 1, 4, 6, 5, 5};
  Floats kept_a{1, 1, 1, 1, 1, 1, 1}, kept_b{3, 3, 3, 3, 3, 3, 3};

  void mix(Rule rule) {
    const std::vector<Arrays> group{{a, kept_a}, {b, kept_b}};
    const std::vector<std::span<const float>> mixed{before_a, before_b};
    mix_by(rule, kTable, group, mixed);
  }
};

TEST(ReplicaRules, ParametersAreAveragedAndWhatTheOptimizerKeepsIsNot) {
  Two two;
  two.mix(Rule::kParameters);
  EXPECT_THAT(two.a, ElementsAre(3, 5, 1, 5, 4, 4, 4));
  EXPECT_EQ(two.b, two.a);
  EXPECT_THAT(two.kept_a, testing::Each(1));
  EXPECT_THAT(two.kept_b, testing::Each(3));
}

TEST(ReplicaRules, MomentsAreAveragedToo) {
  Two two;
  two.mix(Rule::kMoments);
  EXPECT_THAT(two.a, ElementsAre(3, 5, 1, 5, 4, 4, 4));
  EXPECT_THAT(two.kept_a, testing::Each(2));
  EXPECT_EQ(two.kept_b, two.kept_a);
}

TEST(ReplicaRules, ARowKeepsTheWholeChangeOfItsOnlyMemberAndTheMeanChangeOfSeveral) {
  Two two;
  two.mix(Rule::kChangedRows);
  // Row 0: 1 + 8, whole. Row 1: 3 + 4 / 2 and 3 + 2 / 2. Row 2: nobody changed it.
  EXPECT_THAT(two.a, ElementsAre(3, 9, 1, 5, 4, 4, 4));
  EXPECT_EQ(two.b, two.a);
}

TEST(ReplicaRules, ChangesOfTheTableCountSeveralTimes) {
  Two two;
  scale_rows(kTable, two.before_a, 3, two.a);
  EXPECT_THAT(two.a, ElementsAre(2, 25, 1, 14, 2, 3, 3));
}

std::vector<std::string> names_of_ways(const std::vector<std::string>& wanted) {
  const auto ways = ways_of(wanted);
  EXPECT_TRUE(ways) << ways.error().message;
  std::vector<std::string> names;
  for (const Way& way : *ways) names.push_back(way.name);
  return names;
}

TEST(ReplicaWays, AreThoseNamedAfterAllReduceAndUnknownOnesAreRefused) {
  EXPECT_THAT(names_of_ways({}), ElementsAre("all-reduce"));
  EXPECT_THAT(names_of_ways({"none", "all-reduce", "ds-sync", "none"}),
              ElementsAre("all-reduce", "ds-sync", "none"));
  const auto refused = ways_of(std::vector<std::string>{"ds-sync", "ds-sink"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("'ds-sink' is no way"));
  EXPECT_THAT(refused.error().message, testing::HasSubstr("scaled-rows"));
}

TEST(ReplicaTask, IsRefusedIfItsStepsCannotBeDividedEvenly) {
  Task task;
  task.train.count = 64;
  const auto divides = [&](std::uint32_t members, std::uint32_t batch) {
    task.members = members;
    task.batch = batch;
    return check_division(task).has_value();
  };
  EXPECT_TRUE(divides(4, 64));
  EXPECT_TRUE(divides(3, 63));
  EXPECT_FALSE(divides(3, 64));
  EXPECT_FALSE(divides(8, 4)) << "a member would have no records";
  EXPECT_FALSE(divides(4, 68)) << "there are not so many records";
  EXPECT_FALSE(divides(0, 64));
}

}  // namespace
}  // namespace antdt::bench::replicas
