// Whom a domain of Gaia awaits.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "trainer/sync/gaia/mirror_clock.h"

namespace antdt::sync::gaia {
namespace {

using Domains = std::vector<std::uint32_t>;

TEST(MirrorClock, ADomainIsNoFurtherAheadThanItMay) {
  MirrorClock clock(3, 1, 2);
  clock.advance();
  clock.advance();
  EXPECT_EQ(clock.awaited(), Domains{});
  clock.advance();
  EXPECT_EQ(clock.awaited(), (Domains{0, 2}));
  EXPECT_TRUE(*clock.heard(2, 1));
  EXPECT_EQ(clock.awaited(), Domains{0});
  clock.lose(0);
  EXPECT_EQ(clock.awaited(), Domains{});
}

TEST(MirrorClock, WithNobodyAheadEachStepAwaitsAllOthersLastStep) {
  MirrorClock clock(2, 0, 0);
  EXPECT_EQ(clock.awaited(), Domains{});
  clock.advance();
  EXPECT_EQ(clock.awaited(), Domains{1});
  EXPECT_TRUE(*clock.heard(1, 1));
  EXPECT_EQ(clock.awaited(), Domains{});
}

TEST(MirrorClock, ACutAwaitsTheSameMessageOfAll) {
  MirrorClock clock(3, 0, 10);
  clock.advance();
  EXPECT_EQ(clock.awaited_for_cut(1), (Domains{1, 2}));
  EXPECT_TRUE(*clock.heard(1, 1));
  EXPECT_TRUE(*clock.heard(2, 1));
  EXPECT_EQ(clock.awaited_for_cut(1), Domains{});
  EXPECT_EQ(clock.awaited_for_cut(2), (Domains{0, 1, 2}));
}

TEST(MirrorClock, AMessageIsAppliedOnceAndInOrder) {
  MirrorClock clock(2, 0, 1);
  EXPECT_TRUE(*clock.heard(1, 1));
  EXPECT_FALSE(*clock.heard(1, 1));
  EXPECT_TRUE(*clock.heard(1, 2));
  EXPECT_FALSE(*clock.heard(1, 1));
  const auto gap = clock.heard(1, 4);
  ASSERT_FALSE(gap);
  EXPECT_EQ(gap.error().message,
            "message 4 of domain 1 follows message 2: those between are missing");
  EXPECT_EQ(clock.clock(1), 2U);
  EXPECT_FALSE(clock.heard(0, 1));  // one's own
  EXPECT_FALSE(clock.heard(2, 1));  // nobody's
}

// Sixteen domains that begin steps in any order, with messages that take any time: two domains are
// never more than most_ahead + 1 steps apart, and somebody can always go on.
TEST(MirrorClock, DomainsStayTogetherAndNeverAllWait) {
  constexpr std::uint32_t kDomains = 16;
  for (const std::uint64_t most_ahead : {0ULL, 1ULL, 5ULL}) {
    std::mt19937_64 random(most_ahead + 1);
    std::vector<MirrorClock> clocks;
    for (std::uint32_t d = 0; d < kDomains; ++d) clocks.emplace_back(kDomains, d, most_ahead);
    std::uint64_t widest = 0;
    for (int event = 0; event < 20000; ++event) {
      const auto d = static_cast<std::uint32_t>(random() % kDomains);
      const auto other = static_cast<std::uint32_t>(random() % kDomains);
      // A message that has not arrived is awaited; it does arrive, so nobody waits for ever.
      if (other != d && clocks[d].clock(other) < clocks[other].own_clock()) {
        ASSERT_TRUE(*clocks[d].heard(other, clocks[d].clock(other) + 1));
      }
      // Lower numbers are faster.
      if (random() % kDomains >= d && clocks[d].awaited().empty()) clocks[d].advance();
      std::uint64_t least = ~0ULL, most = 0;
      for (const MirrorClock& clock : clocks) {
        least = std::min(least, clock.own_clock());
        most = std::max(most, clock.own_clock());
      }
      widest = std::max(widest, most - least);
    }
    EXPECT_EQ(widest, most_ahead + 1);
    EXPECT_GT(clocks.back().own_clock(), 10U);
  }
}

}  // namespace
}  // namespace antdt::sync::gaia
