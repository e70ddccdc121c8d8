// Golden values: a change here changes what trained models mean.
#include "trainer/data/formats/features.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace antdt::data {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

TEST(Features, HashedIdsNeverChange) {
  const IdMap map = IdMap::hashing(39, 65536);
  EXPECT_EQ(map.id(0, number_key(0)), 24129);
  EXPECT_EQ(map.id(0, number_key(5)), 39371);
  EXPECT_EQ(map.id(12, kMissingKey), 16206);
  EXPECT_EQ(map.id(13, 0x68fd1e64), 52296);
  EXPECT_EQ(map.id(38, text_key("clerk")), 40502);
}

TEST(Features, TheSameKeyInTwoFieldsHasTwoIds) {
  const IdMap map = IdMap::hashing(3, 1 << 20);
  EXPECT_NE(map.id(0, 7), map.id(1, 7));
  EXPECT_NE(map.id(1, 7), map.id(2, 7));
}

TEST(Features, HashedIdsSpreadOverTheTable) {
  const IdMap map = IdMap::hashing(1, 1000);
  std::set<std::int64_t> seen;
  for (std::uint64_t key = 0; key < 10000; ++key) seen.insert(map.id(0, key));
  EXPECT_GT(seen.size(), 990U);
  EXPECT_GE(*seen.begin(), 0);
  EXPECT_LT(*seen.rbegin(), 1000);
}

TEST(Features, WholeNumbersUpToEightHaveAClassEachAndLargerOnesShareClasses) {
  std::set<std::uint64_t> classes;
  for (int number = -8; number <= 8; ++number) classes.insert(number_key(number));
  EXPECT_EQ(classes.size(), 17U);
  EXPECT_EQ(number_key(1000), number_key(1001));
  EXPECT_NE(number_key(1000), number_key(1500));
  EXPECT_NE(number_key(1000), number_key(-1000));
}

TEST(Features, AMissingNumberIsNotZero) {
  EXPECT_NE(number_key(kMissing), number_key(0));
  EXPECT_EQ(dense_value(kMissing), 0.0F);
}

TEST(Features, DenseValuesAreLogarithmsMirroredBelowZero) {
  EXPECT_FLOAT_EQ(dense_value(0), 0.0F);
  EXPECT_FLOAT_EQ(dense_value(99), std::log(100.0F));
  EXPECT_FLOAT_EQ(dense_value(-99), -std::log(100.0F));
  // Whole or not, small or large, they are those of log1p to the last bit.
  for (const double number : {1.0, 2.5, 1023.0, 1023.5, 1024.0, 1e6, 1e18}) {
    EXPECT_EQ(dense_value(number), std::log1p(static_cast<float>(number))) << number;
  }
}

TEST(Features, AVocabularyKeepsKeysSeenOftenEnough) {
  VocabularyCounter counter(2);
  for (const std::uint64_t key : {5, 5, 9, 3, 3, 3}) counter.add(1, key);
  const Vocabulary vocabulary = counter.finish(2);
  EXPECT_EQ(vocabulary, (Vocabulary{{}, {3, 5}}));
  const IdMap map = IdMap::vocabulary(vocabulary);
  EXPECT_EQ(map.rows(), 4U);
  EXPECT_EQ(map.id(0, 3), 0);
  EXPECT_EQ(map.id(1, 9), 1);
  EXPECT_EQ(map.id(1, 3), 2);
  EXPECT_EQ(map.id(1, 5), 3);
}

}  // namespace
}  // namespace antdt::data
