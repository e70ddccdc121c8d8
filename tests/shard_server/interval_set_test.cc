#include "shard_server/ledger/interval_set.h"

#include <gtest/gtest.h>

#include <random>

#include "shard_server/ledger/return_queue.h"

namespace antdt::shard_server {
namespace {

using Intervals = std::vector<Interval>;

TEST(IntervalSetTest, NeighboursCoalesce) {
  IntervalSet set;
  set.add({0, 10});
  set.add({20, 30});
  EXPECT_EQ(set.intervals(), (Intervals{{0, 10}, {20, 30}}));
  set.add({10, 20});
  EXPECT_EQ(set.intervals(), (Intervals{{0, 30}}));
  EXPECT_EQ(set.size(), 30U);
}

TEST(IntervalSetTest, AnIntervalAddedTwiceCountsOnce) {
  IntervalSet set;
  set.add({5, 15});
  set.add({0, 10});
  set.add({7, 8});
  EXPECT_EQ(set.size(), 15U);
}

TEST(IntervalSetTest, AgreesWithASetOfSinglePositions) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    IntervalSet set;
    std::vector<bool> model(60);
    for (int i = 0; i < 30; ++i) {
      Interval at{random() % 60, random() % 61};
      if (at.to < at.from) std::swap(at.from, at.to);
      const bool adds = random() % 3 != 0;
      adds ? set.add(at) : set.remove(at);
      for (std::uint64_t p = at.from; p < at.to; ++p) model[p] = adds;

      const auto count = static_cast<std::uint64_t>(std::count(model.begin(), model.end(), true));
      ASSERT_EQ(set.size(), count);
      ASSERT_EQ(total_size(set.intervals()), count);
      const Interval window{random() % 30, 30 + random() % 31};
      std::vector<int> seen(60);
      for (const Interval in : set.inside(window)) {
        for (std::uint64_t p = in.from; p < in.to; ++p) seen[p] = 1;
      }
      for (const Interval out : set.outside(window)) {
        for (std::uint64_t p = out.from; p < out.to; ++p) seen[p] = 2;
      }
      for (std::uint64_t p = 0; p < 60; ++p) {
        const bool within = p >= window.from && p < window.to;
        ASSERT_EQ(seen[p], !within ? 0 : model[p] ? 1 : 2);
      }
    }
  }
}

TEST(ReturnQueueTest, TheLowestComesFirstAndRetriesAreKeptApart) {
  ReturnQueue queue;
  queue.add({{20, 30}, 1});
  queue.add({{0, 5}, 0});
  queue.add({{30, 40}, 1});
  queue.add({{40, 50}, 2});
  EXPECT_EQ(queue.size(), 35U);
  EXPECT_EQ(queue.ranges(), (std::vector<Range>{{{0, 5}, 0}, {{20, 40}, 1}, {{40, 50}, 2}}));
  EXPECT_EQ(queue.front(7, 10), (std::vector<Range>{{{0, 5}, 0}, {{20, 22}, 1}}));
  EXPECT_EQ(queue.front(100, 1), (std::vector<Range>{{{0, 5}, 0}}));
}

TEST(ReturnQueueTest, RemovingCutsRanges) {
  ReturnQueue queue;
  queue.add({{0, 10}, 3});
  queue.add({{20, 30}, 0});
  queue.remove({4, 22});
  EXPECT_EQ(queue.ranges(), (std::vector<Range>{{{0, 4}, 3}, {{22, 30}, 0}}));
  EXPECT_EQ(queue.size(), 12U);
  EXPECT_TRUE(queue.holds({22, 30}));
  EXPECT_FALSE(queue.holds({3, 5}));
  EXPECT_FALSE(queue.holds({29, 31}));
}

TEST(ReturnQueueTest, NeighboursOfDifferentRetriesAreHeldTogether) {
  ReturnQueue queue;
  queue.add({{0, 10}, 0});
  queue.add({{10, 20}, 1});
  EXPECT_TRUE(queue.holds({5, 15}));
}

}  // namespace
}  // namespace antdt::shard_server
