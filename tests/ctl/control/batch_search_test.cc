#include "ctl/control/batch_search.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <random>

namespace antdt::ctl {
namespace {

// A device whose time is flat, then linear, up to its memory.
BatchClass device(std::uint32_t members, double flat_s, std::uint32_t flat_until,
                  double per_sample_s, std::uint32_t memory, std::uint32_t least = 1,
                  std::uint32_t multiple_of = 1) {
  BatchClass c;
  c.members = members;
  c.least = (least + multiple_of - 1) / multiple_of * multiple_of;
  for (std::uint32_t b = c.least; b <= memory; b += multiple_of) {
    c.seconds.push_back(flat_s + per_sample_s * (b > flat_until ? b - flat_until : 0));
  }
  return c;
}

// The best result among all (b, c) of all classes.
std::optional<double> by_trying_all(const std::vector<BatchClass>& classes, std::uint32_t total,
                                    std::uint32_t multiple_of) {
  std::optional<double> best;
  const std::function<void(std::size_t, std::uint64_t, double)> go =
      [&](std::size_t i, std::uint64_t sum, double step_s) {
        if (i == classes.size()) {
          if (sum == total && (!best || step_s < *best)) best = step_s;
          return;
        }
        const BatchClass& c = classes[i];
        for (std::size_t k = 0; k < c.seconds.size(); ++k) {
          const std::uint64_t size = c.least + k * multiple_of;
          for (std::uint64_t n = 1; sum + c.members * n * size <= total; ++n) {
            if (c.most_accumulation != 0 && n > c.most_accumulation) break;
            if (n * size < c.least_part) continue;
            go(i + 1, sum + c.members * n * size,
               std::max(step_s, static_cast<double>(n) * c.seconds[k]));
          }
        }
      };
  go(0, 0, 0);
  return best;
}

std::uint64_t sum_of(const BatchesFound& found) {
  std::uint64_t sum = 0;
  for (const ClassBatches& p : found.parts)
    sum += std::uint64_t{p.members} * p.micro_batch * p.accumulation;
  return sum;
}

double step_of(const BatchesFound& found, const std::vector<BatchClass>& classes,
               std::uint32_t multiple_of) {
  double step_s = 0;
  for (const ClassBatches& p : found.parts) {
    const BatchClass& c = classes[p.cls];
    EXPECT_GE(p.micro_batch, c.least);
    EXPECT_EQ(p.micro_batch % multiple_of, 0u);
    step_s =
        std::max(step_s, p.accumulation * c.seconds.at((p.micro_batch - c.least) / multiple_of));
  }
  return step_s;
}

std::vector<BatchClass> random_classes(std::mt19937_64& random, std::uint32_t multiple_of) {
  const auto pick = [&](std::uint32_t from, std::uint32_t to) {
    return std::uniform_int_distribution<std::uint32_t>(from, to)(random);
  };
  std::vector<BatchClass> classes(pick(1, 3));
  for (BatchClass& c : classes) {
    const std::uint32_t least = pick(1, 3) * multiple_of;
    c = device(pick(1, 4), pick(1, 20), pick(1, 6) * multiple_of, pick(0, 4) * 0.25,
               least + pick(0, 12) * multiple_of, least, multiple_of);
    if (pick(0, 3) == 0) c.most_accumulation = pick(1, 3);
    if (pick(0, 3) == 0) c.least_part = pick(1, 6);
    // Measured curves are not smooth.
    if (pick(0, 2) == 0) {
      for (double& s : c.seconds) s += pick(0, 3);
    }
  }
  return classes;
}

TEST(BatchSearch, FindsWhatTryingAllBatchesFinds) {
  std::mt19937_64 random(20240411);
  int solved = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto multiple_of = std::uniform_int_distribution<std::uint32_t>(1, 3)(random);
    const auto classes = random_classes(random, multiple_of);
    const std::uint32_t total =
        multiple_of * std::uniform_int_distribution<std::uint32_t>(1, 70)(random);
    const auto expected = by_trying_all(classes, total, multiple_of);
    const auto found = search_alike(classes, total, multiple_of);
    ASSERT_EQ(found.has_value(), expected.has_value()) << "case " << i;
    if (!found) continue;
    ++solved;
    ASSERT_DOUBLE_EQ(found->step_s, *expected) << "case " << i;
    ASSERT_EQ(sum_of(*found), total) << "case " << i;
    ASSERT_DOUBLE_EQ(step_of(*found, classes, multiple_of), found->step_s) << "case " << i;
  }
  EXPECT_GT(solved, 1000);
}

TEST(BatchSearch, UnequalMembersAreNeverSlowerAndAlwaysExact) {
  std::mt19937_64 random(7);
  int unlike = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto classes = random_classes(random, 1);
    const std::uint32_t total = std::uniform_int_distribution<std::uint32_t>(1, 70)(random);
    const auto alike = search_alike(classes, total, 1);
    const auto found = search_batches(classes, total, 1);
    ASSERT_TRUE(found || !alike) << "case " << i;
    if (!found) continue;
    std::vector<std::uint32_t> members(classes.size());
    for (const ClassBatches& p : found->parts) members[p.cls] += p.members;
    for (std::size_t c = 0; c < classes.size(); ++c) ASSERT_EQ(members[c], classes[c].members);
    ASSERT_EQ(sum_of(*found), total) << "case " << i;
    ASSERT_DOUBLE_EQ(step_of(*found, classes, 1), found->step_s) << "case " << i;
    if (alike) {
      ASSERT_LE(found->step_s, alike->step_s) << "case " << i;
    } else {
      ++unlike;
    }
  }
  EXPECT_GT(unlike, 100);
}

TEST(BatchSearch, FasterClassesGetMoreUpToTheirMemoryAndThenAccumulate) {
  // Speeds 1 : 2.5 : 4; the fastest device holds 64 samples at most.
  const std::vector<BatchClass> classes{device(3, 0.004, 1, 0.004, 512),
                                        device(3, 0.0016, 1, 0.0016, 512),
                                        device(2, 0.001, 1, 0.001, 64)};
  const auto found = search_batches(classes, 2048, 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(sum_of(*found), 2048u);
  const double ideal_s = 2048 / (3 / 0.004 + 3 / 0.0016 + 2 / 0.001);
  EXPECT_LT(found->step_s, 1.02 * ideal_s);
  EXPECT_GE(found->parts.back().accumulation, 7u);
  EXPECT_LE(found->parts.back().micro_batch, 64u);
}

TEST(BatchSearch, ABatchThatEqualMembersCannotMakeIsMadeByUnequalOnes) {
  const std::vector<BatchClass> classes{device(100, 1, 1, 1, 10)};
  EXPECT_FALSE(search_alike(classes, 150, 1));
  const auto found = search_batches(classes, 150, 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(sum_of(*found), 150u);
  EXPECT_EQ(found->step_s, 2);
}

TEST(BatchSearch, LimitsThatLeaveNoWayAreReported) {
  EXPECT_FALSE(search_batches(std::vector{device(4, 1, 1, 1, 8, 8)}, 24, 1)) << "too small";
  BatchClass once = device(2, 1, 1, 1, 8);
  once.most_accumulation = 1;
  EXPECT_FALSE(search_batches(std::vector{once}, 20, 1)) << "too large";
  EXPECT_FALSE(search_batches(std::vector{device(2, 1, 1, 1, 8)}, 21, 2)) << "no multiple";
  EXPECT_FALSE(search_batches({}, 8, 1));
}

TEST(BatchSearch, SixClassesAndLargeBatches) {
  double longest_s = 0;
  for (const std::uint32_t total : {65536u, 65521u, 64000u}) {
    for (const std::uint32_t members : {1u, 7u, 100u, 1000u}) {
      std::vector<BatchClass> classes;
      for (std::uint32_t i = 0; i < 6; ++i) {
        classes.push_back(device(members, 0.002 * (i + 1), 8, 0.00025 * (i + 1.3), 64 << i));
      }
      const auto begin = std::chrono::steady_clock::now();
      const auto found = search_batches(classes, total, 1);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      longest_s = std::max(longest_s, took.count());
      ASSERT_TRUE(found);
      EXPECT_EQ(sum_of(*found), total);
    }
  }
  // Not asserted: how long it takes depends on the machine and the build.
  RecordProperty("milliseconds", static_cast<int>(1000 * longest_s));
  std::printf("the longest search took %.1f ms\n", 1000 * longest_s);
}

}  // namespace
}  // namespace antdt::ctl
