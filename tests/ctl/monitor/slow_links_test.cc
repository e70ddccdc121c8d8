// Which link of a ring is slow, and at which end.
#include "ctl/monitor/slow_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace antdt::ctl {
namespace {

// "0" for a member whose links are both slow, "1-2" for the ends of one slow link. `slow` are the
// hops that take 10 ms instead of 1 ms, each named by the rank at which it begins.
std::vector<std::string> named(std::size_t size, const std::vector<std::size_t>& slow) {
  std::vector<Hop> hops(size, Hop{4, 1e-3, 8e-4});
  for (const std::size_t rank : slow) hops[rank] = {4, 11e-3, 10e-3};
  std::vector<std::string> names;
  for (const SlowLink& link : find_slow_links(hops)) {
    names.push_back(std::to_string(link.rank) +
                    (link.with ? "-" + std::to_string(*link.with) : std::string()));
    EXPECT_DOUBLE_EQ(link.hop_s, 10e-3);
    EXPECT_DOUBLE_EQ(link.usual_s, 1e-3);
  }
  return names;
}
using Names = std::vector<std::string>;

TEST(SlowLinks, AMemberWithTwoSlowHopsIsNamedAndItsNeighboursAreNot) {
  for (std::size_t size = 3; size < 9; ++size) {
    for (std::size_t rank = 0; rank < size; ++rank) {
      EXPECT_EQ(named(size, {rank, (rank + size - 1) % size}), Names{std::to_string(rank)});
    }
  }
}

TEST(SlowLinks, OneSlowHopNamesItsTwoEnds) {
  EXPECT_EQ(named(4, {1}), (Names{"1-2", "2-1"}));
  EXPECT_EQ(named(3, {2}), (Names{"0-2", "2-0"}));
}

TEST(SlowLinks, TwoSlowNeighboursAreBothNamed) {
  EXPECT_EQ(named(8, {1, 2, 3}), (Names{"2", "3"}));
}

TEST(SlowLinks, EqualHopsAreNotSlow) {
  EXPECT_EQ(named(4, {}), Names{});
  EXPECT_EQ(named(4, {0, 1, 2, 3}).size(), 0U);
  EXPECT_EQ(named(2, {0}), Names{}) << "in a ring of two there is one link";
  EXPECT_EQ(find_slow_links({}).size(), 0U);
}

TEST(SlowLinks, AHopMeasuredOnceOrFastOnceIsNotSlow) {
  std::vector<Hop> hops(4, Hop{4, 1e-3, 8e-4});
  hops[1] = {1, 11e-3, 10e-3};
  EXPECT_TRUE(find_slow_links(hops).empty());
  hops[1] = {4, 50e-3, 1e-3};
  EXPECT_TRUE(find_slow_links(hops).empty()) << "a process without a CPU for a moment";
}

TEST(SlowLinks, TheTimeToWakeAProcessIsNoSlowLink) {
  std::vector<Hop> hops(4, Hop{4, 0.08e-3, 0.05e-3});
  hops[1] = {4, 0.3e-3, 0.25e-3};
  EXPECT_TRUE(find_slow_links(hops).empty());
  hops[1] = {4, 0.4e-3, 0.3e-3};
  EXPECT_EQ(find_slow_links(hops).size(), 2U);
}

TEST(SlowLinks, WhileOnlyOneHopOfASlowLinkLooksSlowNobodyIsNamed) {
  std::vector<Hop> hops(8, Hop{4, 1e-3, 8e-4});
  hops[6] = {4, 11e-3, 10e-3};
  hops[7] = {4, 3.5e-3, 8e-4};  // one of four was slow: the first since it began
  EXPECT_TRUE(find_slow_links(hops).empty());
  hops[7] = {1, 11e-3, 10e-3};
  EXPECT_TRUE(find_slow_links(hops).empty()) << "not known yet";
  hops[7] = {4, 11e-3, 10e-3};
  ASSERT_EQ(find_slow_links(hops).size(), 1U);
  EXPECT_EQ(find_slow_links(hops)[0].rank, 7U);
}

TEST(SlowLinks, NextToAVerySlowLinkOtherLinksAreNotBlamed) {
  std::vector<Hop> hops(8, Hop{4, 0.08e-3, 0.05e-3});
  hops[5] = hops[6] = {4, 41e-3, 40e-3};
  hops[2] = {4, 0.6e-3, 0.5e-3};  // two processes that had to wait for a CPU
  auto links = find_slow_links(hops);
  ASSERT_EQ(links.size(), 3U);
  for (const SlowLink& link : links) {
    const double slowdown = slowdown_by(link, 0.1, 0.08);
    if (link.rank == 6) {
      EXPECT_GT(slowdown, 4);
    } else {
      EXPECT_LT(slowdown, 1.02);
    }
  }
  hops[5].measured = hops[6].measured = 1;
  links = find_slow_links(hops);
  ASSERT_EQ(links.size(), 2U) << "the very slow one has to be measured once more";
  for (const SlowLink& link : links) EXPECT_LT(slowdown_by(link, 0.1, 0.08), 1.02);
}

TEST(SlowLinks, ASlowLinkIsNamedAlsoBesideASlowerOne) {
  std::vector<Hop> hops(4, Hop{4, 1e-3, 1e-3});
  hops[1] = {4, 10e-3, 10e-3};
  hops[3] = {4, 50e-3, 50e-3};
  const auto links = find_slow_spokes(hops);
  ASSERT_EQ(links.size(), 2U);
  EXPECT_NEAR(slowdown_by(links[0], 0.1, 0.05), 0.1 / (0.1 - 0.05 * 0.9), 1e-9);
  EXPECT_NEAR(slowdown_by(links[1], 0.1, 0.08), 0.1 / (0.1 - 0.08 * 0.98), 1e-9);
}

TEST(SlowLinks, SeverityIsWhatTheStepWouldTakeWithALinkLikeTheOthers) {
  const SlowLink link{0, std::nullopt, 10e-3, 1e-3, 10e-3};
  EXPECT_NEAR(slowdown_by(link, 0.1, 0.05), 0.1 / (0.1 - 0.05 * 0.9), 1e-9);
  EXPECT_NEAR(slowdown_by(link, 0.1, 0.001), 1.009, 1e-3) << "nobody feels it";
  EXPECT_DOUBLE_EQ(slowdown_by(link, 0, 0), 1);
  EXPECT_GT(slowdown_by(link, 0.1, 99), 1);
}

}  // namespace
}  // namespace antdt::ctl
