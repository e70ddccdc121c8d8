// Tests which member sends what to which, in the ring and by doubling distances.
#include "trainer/collective/tcp/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

#include "trainer/collective/tcp/ring_plan.h"

namespace antdt::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RingPlan, EachRankSendsWhatItsRightNeighbourReceives) {
  for (std::size_t elements : {0, 1, 5, 1000, 100'003}) {
    for (std::uint32_t size : {2U, 3U, 5U}) {
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        const RingPlan plan(rank, size, elements, 1024);
        const RingPlan next((rank + 1) % size, size, elements, 1024);
        ASSERT_EQ(plan.operations(), next.operations());
        for (std::size_t i = 0; i < plan.operations(); ++i) {
          EXPECT_EQ(plan.sent(i), next.received(i));
          EXPECT_LE(plan.sent(i).count, 1024U);
        }
        for (std::size_t i = plan.segments(); i < plan.operations(); ++i) {
          EXPECT_EQ(plan.sent(i), plan.received(i - plan.segments()));
        }
      }
    }
  }
}

TEST(Peers, AreThoseAtPowersOfTwoOnBothSides) {
  EXPECT_THAT(peers_of(0, 1), IsEmpty());
  EXPECT_THAT(peers_of(1, 2), ElementsAre(0));
  EXPECT_THAT(peers_of(0, 8), ElementsAre(1, 2, 4, 6, 7));
  EXPECT_THAT(peers_of(1, 5), ElementsAre(0, 2, 3, 4));
  EXPECT_EQ(peers_of(0, 200).size(), 16U);
}

TEST(Peers, KnowOneAnother) {
  for (std::uint32_t size = 1; size < 40; ++size) {
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      for (const std::uint32_t peer : peers_of(rank, size)) {
        EXPECT_THAT(peers_of(peer, size), ::testing::Contains(rank));
      }
    }
  }
}

TEST(GatherRounds, BringEveryBlockToEverybodyOnceAndOnlyFromPeers) {
  for (std::uint32_t size = 1; size < 40; ++size) {
    std::vector<std::set<std::uint32_t>> blocks(size);
    for (std::uint32_t rank = 0; rank < size; ++rank) blocks[rank] = {rank};
    const std::size_t rounds = gather_rounds(0, size).size();
    for (std::size_t round = 0; round < rounds; ++round) {
      const auto before = blocks;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        const GatherRound mine = gather_rounds(rank, size)[round];
        const GatherRound theirs = gather_rounds(mine.from, size)[round];
        EXPECT_EQ(theirs.to, rank);
        EXPECT_EQ(theirs.sent, mine.received);
        EXPECT_THAT(peers_of(rank, size), ::testing::Contains(mine.from));
        for (std::uint32_t i = 0; i < mine.received.count; ++i) {
          const std::uint32_t block = (mine.received.first + i) % size;
          EXPECT_TRUE(before[mine.from].contains(block));
          EXPECT_TRUE(blocks[rank].insert(block).second) << "it had it already";
        }
      }
    }
    for (const auto& all : blocks) EXPECT_EQ(all.size(), size);
  }
}

TEST(DoublingPlan, CountsEverybodyOnceAndNeedsOnlyPeers) {
  for (std::uint32_t size = 1; size < 40; ++size) {
    std::vector<std::vector<int>> counted(size, std::vector<int>(size));
    for (std::uint32_t rank = 0; rank < size; ++rank) counted[rank][rank] = 1;
    const auto add = [&](std::uint32_t to, const std::vector<int>& values) {
      for (std::uint32_t i = 0; i < size; ++i) counted[to][i] += values[i];
    };
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      const DoublingPlan plan = doubling_plan(rank, size);
      if (plan.folded) {
        EXPECT_THAT(peers_of(rank, size), ::testing::Contains(*plan.folded));
      }
      if (plan.folds) add(*plan.folded, counted[rank]);
    }
    for (std::size_t round = 0; round < doubling_plan(0, size).partners.size(); ++round) {
      const auto before = counted;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        const DoublingPlan plan = doubling_plan(rank, size);
        if (plan.folds) continue;
        const std::uint32_t partner = plan.partners[round];
        EXPECT_EQ(doubling_plan(partner, size).partners[round], rank);
        EXPECT_THAT(peers_of(rank, size), ::testing::Contains(partner));
        add(rank, before[partner]);
      }
    }
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      const DoublingPlan plan = doubling_plan(rank, size);
      const auto& result = plan.folds ? counted[*plan.folded] : counted[rank];
      EXPECT_EQ(result, std::vector<int>(size, 1)) << rank << " of " << size;
      if (plan.folds) {
        EXPECT_EQ(doubling_plan(*plan.folded, size).folded, rank);
      }
    }
  }
}

TEST(Doubling, IsForSmallSumsAndTheMoreMembersTheLargerTheyMayBe) {
  EXPECT_TRUE(doubling_is_quicker(8, 1024));
  EXPECT_FALSE(doubling_is_quicker(8, 64 << 20));
  EXPECT_FALSE(doubling_is_quicker(8, 1 << 20));
  EXPECT_TRUE(doubling_is_quicker(200, 1 << 20));
  EXPECT_FALSE(doubling_is_quicker(200, 64 << 20));
}

}  // namespace
}  // namespace antdt::trainer
