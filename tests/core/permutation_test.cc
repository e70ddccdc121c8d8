#include "core/permutation.h"

#include <gtest/gtest.h>

#include <vector>

namespace antdt {
namespace {

TEST(PermutationTest, IsABijectionWithItsInverse) {
  for (const std::uint64_t n : {1ULL, 2ULL, 3ULL, 4ULL, 5ULL, 17ULL, 256ULL, 1000ULL, 4097ULL}) {
    const Permutation permutation(n, 42);
    std::vector<bool> seen(n, false);
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t v = permutation(i);
      ASSERT_LT(v, n);
      ASSERT_FALSE(seen[v]) << "n=" << n << " value " << v << " twice";
      seen[v] = true;
      ASSERT_EQ(permutation.inverse(v), i);
    }
  }
}

TEST(PermutationTest, DependsOnTheSeed) {
  const Permutation a(1000, 1);
  const Permutation b(1000, 2);
  int same = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) same += a(i) == b(i) ? 1 : 0;
  EXPECT_LT(same, 20);
}

// The mapping is stored in no file, so runs are resumed and audited with it:
// these values may only change together with kPermutationVersion.
TEST(PermutationTest, KeepsItsMapping) {
  ASSERT_EQ(kPermutationVersion, 1);
  const Permutation small(10, 7);
  EXPECT_EQ(small(0), 7U);
  EXPECT_EQ(small(9), 1U);
  const Permutation large(1000000007, 7);
  EXPECT_EQ(large(0), 52635442U);
  EXPECT_EQ(large(1), 745068328U);
}

TEST(PermutationTest, WalksADomainOfTenToTheNineAtRandomPlaces) {
  const Permutation p(1000000000, 99);
  for (std::uint64_t i = 0; i < 1000000000; i += 99999989) EXPECT_EQ(p.inverse(p(i)), i);
}

}  // namespace
}  // namespace antdt
