#include "shard_server/accounts/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace antdt::shard_server {
namespace {

using testing::HasSubstr;

struct Scored {
  std::uint32_t bin;
  bool positive;
};

wire::EvalPartial partial_of(const std::vector<Scored>& scored) {
  wire::EvalPartial sum;
  for (const Scored& s : scored) {
    wire::EvalPartial one;
    one.records = 1;
    one.loss_sum = 0.5;
    one.correct = s.positive == (s.bin >= wire::EvalPartial::kScoreBins / 2) ? 1 : 0;
    one.bins = {s.bin};
    one.negatives = {s.positive ? 0U : 1U};
    one.positives = {s.positive ? 1U : 0U};
    merge(sum, one);
  }
  return sum;
}

// Every pair of a positive and a negative, looked at.
double auc_by_pairs(const std::vector<Scored>& scored) {
  double ordered = 0, pairs = 0;
  for (const Scored& p : scored) {
    for (const Scored& n : scored) {
      if (!p.positive || n.positive) continue;
      pairs += 1;
      ordered += p.bin > n.bin ? 1 : p.bin == n.bin ? 0.5 : 0;
    }
  }
  return ordered / pairs;
}

TEST(EvaluationTest, TheAreaUnderTheCurveIsThatOfAllPairs) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<Scored> scored = {{1, true}, {2, false}};
    for (int i = 0; i < 40; ++i)
      scored.push_back({static_cast<std::uint32_t>(random() % 12), random() % 3 == 0});
    EXPECT_NEAR(*metrics(partial_of(scored)).auc, auc_by_pairs(scored), 1e-12);
  }
}

TEST(EvaluationTest, APerfectOrderIsOneAndATieIsAHalf) {
  EXPECT_EQ(metrics(partial_of({{1, false}, {9, true}})).auc, 1.0);
  EXPECT_EQ(metrics(partial_of({{9, false}, {1, true}})).auc, 0.0);
  EXPECT_EQ(metrics(partial_of({{4, false}, {4, true}})).auc, 0.5);
}

TEST(EvaluationTest, MergingInAnyOrderGivesTheSame) {
  std::vector<Scored> scored;
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i)
    scored.push_back({static_cast<std::uint32_t>(random() % 16384), random() % 2 == 0});
  const auto forward = partial_of(scored);
  std::reverse(scored.begin(), scored.end());
  const auto backward = partial_of(scored);
  EXPECT_EQ(forward.bins, backward.bins);
  EXPECT_EQ(forward.positives, backward.positives);
  EXPECT_EQ(forward.negatives, backward.negatives);
  EXPECT_TRUE(check_partial(forward));
}

TEST(EvaluationTest, LossAndAccuracyAreMeansOverRecords) {
  const auto result = metrics(partial_of({{0, false}, {16383, true}, {0, true}, {1, false}}));
  EXPECT_EQ(result.records, 4U);
  EXPECT_DOUBLE_EQ(*result.log_loss, 0.5);
  EXPECT_DOUBLE_EQ(*result.accuracy, 0.75);
}

TEST(EvaluationTest, AnEvaluationWithoutRecordsReportsNothing) {
  EXPECT_FALSE(metrics({}).auc);
  EXPECT_FALSE(metrics({}).log_loss);
  EXPECT_FALSE(metrics(partial_of({{3, true}})).auc);
}

TEST(EvaluationTest, NamedSumsAreAddedByName) {
  wire::EvalPartial sum, part;
  sum.named = {{"b", 2}};
  part.named = {{"a", 1}, {"b", 0.5}, {"c", -3}};
  merge(sum, part);
  const wire::NamedSums expected = {{"a", 1}, {"b", 2.5}, {"c", -3}};
  EXPECT_EQ(sum.named, expected);
  EXPECT_TRUE(metrics(sum).named.empty()) << "of no records";
  sum.records = 4;
  EXPECT_EQ(metrics(sum).named, expected);
}

TEST(EvaluationTest, NamedSumsThatCannotBeAreRefused) {
  const auto refused = [](wire::NamedSums named) {
    wire::EvalPartial partial;
    partial.named = std::move(named);
    const Status checked = check_partial(partial);
    return checked ? "" : checked.error().message;
  };
  EXPECT_EQ(refused({{"a", 1}, {"top-5/hit@1", 0}}), "");
  EXPECT_THAT(refused({{"", 1}}), HasSubstr("its name is not 1 to 64 letters"));
  EXPECT_THAT(refused({{"a b", 1}}), HasSubstr("its name is not 1 to 64 letters"));
  EXPECT_THAT(refused({{std::string(65, 'a'), 1}}), HasSubstr("its name is not 1 to 64 letters"));
  EXPECT_THAT(refused({{"a", 1}, {"a", 1}}), HasSubstr("the sum 'a' is there twice"));
  EXPECT_THAT(refused({{"b", 1}, {"a", 1}}), HasSubstr("behind a greater name"));
  wire::NamedSums many;
  for (int i = 100; i < 165; ++i) many.push_back({std::to_string(i), 1});
  EXPECT_THAT(refused(many), HasSubstr("65 named sums: 64 at most"));
}

TEST(EvaluationTest, APartialThatCannotBeIsRefused) {
  wire::EvalPartial partial;
  partial.bins = {4, 4};
  partial.negatives = partial.positives = {1, 1};
  EXPECT_FALSE(check_partial(partial));
  partial.bins = {4, wire::EvalPartial::kScoreBins};
  EXPECT_FALSE(check_partial(partial));
  partial.bins = {4, 5};
  EXPECT_TRUE(check_partial(partial));
  partial.positives = {1};
  EXPECT_FALSE(check_partial(partial));
}

// A job whose model has diverged goes on, as it does when losses of the training are not finite.
TEST(EvaluationTest, LossesOfAModelThatHasDivergedMakeTheMeanNotFinite) {
  wire::EvalPartial sum, part;
  sum.records = part.records = 2;
  part.loss_sum = std::nan("");
  part.named = {{"norm", std::numeric_limits<double>::infinity()}};
  ASSERT_TRUE(check_partial(part));
  merge(sum, part);
  EXPECT_TRUE(std::isnan(*metrics(sum).log_loss));
  EXPECT_EQ(metrics(sum).named, part.named);
  EXPECT_EQ(metrics(sum).accuracy, 0);
}

}  // namespace
}  // namespace antdt::shard_server
