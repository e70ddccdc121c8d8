// The exchanges of a replica: when one is due, what waits for it, what is counted.
#include "trainer/worker/servers/shadow_chain.h"

#include <gtest/gtest.h>

namespace antdt::worker::ps_worker {
namespace {

using std::chrono::milliseconds;
using At = ShadowChain::At;

constexpr MonoTime at(int ms) { return MonoTime{milliseconds(ms)}; }

TEST(ShadowChain, InTheBackgroundAnExchangeIsDueAfterAnyStepAndHoldsUpNone) {
  ShadowChain chain(ShadowRules{0});
  EXPECT_FALSE(chain.is_due()) << "nothing was trained";
  chain.trained(at(0));
  EXPECT_TRUE(chain.is_due());
  EXPECT_FALSE(chain.holds_up());
}

TEST(ShadowChain, InTheForegroundEachKthStepWaits) {
  ShadowChain chain(ShadowRules{3});
  for (int step = 1; step <= 2; ++step) {
    chain.trained(at(step));
    EXPECT_FALSE(chain.is_due() || chain.holds_up()) << step;
  }
  chain.trained(at(3));
  EXPECT_TRUE(chain.is_due() && chain.holds_up());
}

TEST(ShadowChain, TheNextExchangeIsDueOnlyWhenThePreviousOneIsDecided) {
  ShadowChain chain(ShadowRules{0});
  chain.trained(at(0));
  chain.pull_said();
  chain.trained(at(1));
  EXPECT_FALSE(chain.is_due());
  chain.centre_is_here();
  chain.carried(7, false, at(2));
  chain.trained(at(3));
  EXPECT_FALSE(chain.is_due());
  chain.decided(6);
  EXPECT_EQ(chain.at(), At::kPushing) << "the push before it has nothing to do with it";
  chain.decided(7);
  EXPECT_TRUE(chain.is_due());
}

TEST(ShadowChain, TheGapIsCountedFromExchangeToExchangeAndNotOverAPauseBetweenPhases) {
  ShadowChain chain(ShadowRules{0});
  chain.trained(at(100));
  chain.trained(at(110));
  chain.pull_said();
  chain.centre_is_here();
  chain.carried(1, true, at(130));  // the end of a phase
  EXPECT_TRUE(chain.drains_with(1));
  chain.decided(1);
  EXPECT_FALSE(chain.drains_with(1));
  chain.trained(at(5000));
  chain.pull_said();
  chain.centre_is_here();
  chain.carried(2, false, at(5010));
  EXPECT_EQ(chain.sums(), (wire::ShadowSums{2, 3, 40'000, 0}));
  EXPECT_EQ(chain.behind(), 0U);
}

TEST(ShadowChain, ANewGroupBeginsWithNothingToExchangeAndTheCountsGoOn) {
  ShadowChain chain(ShadowRules{0});
  chain.trained(at(0));
  chain.pull_said();
  chain.centre_is_here();
  chain.carried(1, false, at(10));
  chain.trained(at(20));
  chain.begin();
  EXPECT_EQ(chain.at(), At::kResting);
  EXPECT_EQ(chain.behind(), 0U);
  EXPECT_FALSE(chain.is_due());
  EXPECT_EQ(chain.sums().exchanges, 1U);
}

}  // namespace
}  // namespace antdt::worker::ps_worker
