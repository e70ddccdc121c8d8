// Domains that train by Gaia (bench/gaia), on small data that is made here.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "bench/gaia/domains.h"

namespace antdt::bench::gaia {
namespace {

// Four classes, each around a point of its own.
data::Examples points(std::size_t count, std::size_t width, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  data::Examples examples;
  examples.count = count;
  for (std::size_t i = 0; i < count; ++i) {
    const auto label = i % 4;
    examples.labels.push_back(static_cast<float>(label));
    for (std::size_t k = 0; k < width; ++k) {
      examples.dense.push_back((k % 4 == label ? 1.5F : 0.0F) + normal(random));
    }
  }
  return examples;
}
const Images& images() {
  static const Images made = [] {
    Images images;
    images.shape.dense_width = 12;
    images.shape.classes = 4;
    images.train = points(2000, 12, 1);
    images.test = points(400, 12, 2);
    return images;
  }();
  return made;
}
Setting setting() {
  Setting setting;
  setting.batch = 16;
  setting.steps = 60;
  setting.rate = 0.05;
  return setting;
}
double largest_difference(const Outcome& a, const Outcome& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.model.size(); ++i) {
    largest = std::max<double>(largest, std::abs(a.model[i] - b.model[i]));
  }
  return largest;
}

// In lock step, with everything sent, Gaia is all-reduce. The optimizer has momentum.
TEST(GaiaDomains, ThatSendEverythingTrainTheModelOfSummedGradients) {
  Setting s = setting();
  s.threshold = 0;
  const auto gaia = train_by_gaia(images(), s);
  const auto sums = train_by_sums(images(), s);
  ASSERT_TRUE(gaia && sums);
  EXPECT_LT(largest_difference(*gaia, *sums), 1e-4);
  s.seed = 2;
  EXPECT_GT(largest_difference(*train_by_sums(images(), s), *sums), 0.1);
}

TEST(GaiaDomains, SendFewerBytesTheHigherTheThreshold) {
  Setting s = setting();
  double before = 1;
  for (const double threshold : {0.01, 0.1, 1.0}) {
    s.threshold = threshold;
    const auto outcome = train_by_gaia(images(), s);
    ASSERT_TRUE(outcome);
    EXPECT_LT(outcome->bytes, before);
    EXPECT_LE(outcome->bytes, outcome->paper_bytes + 0.01);
    before = outcome->bytes;
  }
}

// Links that take three steps: a domain that may be four ahead does not wait for them, and one that
// may not be ahead waits in each step.
TEST(GaiaDomains, AheadOfOthersDoNotWaitForLinks) {
  Setting s = setting();
  s.links.latency_s = 2.5;
  s.most_ahead = 4;
  const auto ahead = train_by_gaia(images(), s);
  ASSERT_TRUE(ahead);
  EXPECT_DOUBLE_EQ(ahead->seconds, s.steps);
  EXPECT_NEAR(ahead->mean_lag, 3, 0.2);
  s.most_ahead = 0;
  const auto together = train_by_gaia(images(), s);
  ASSERT_TRUE(together);
  EXPECT_DOUBLE_EQ(together->seconds, s.steps + (s.steps - 1) * 2.5);
  EXPECT_NEAR(together->mean_lag, 0, 0.2);
}

}  // namespace
}  // namespace antdt::bench::gaia
