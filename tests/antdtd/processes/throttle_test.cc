// Tests which process runs when under injected throttling.
#include "antdtd/processes/throttle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::antdtd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const ProcessKey kSlowed{"ctr-1", {{'w', 3}, Attempt{2}}};
const MonoTime kStart = MonoTime{} + std::chrono::hours(1);

TEST(Throttle, AProcessRunsItsPartOfEachRound) {
  Throttles throttles;
  EXPECT_EQ(throttles.next_due(), std::nullopt);
  throttles.set(kSlowed, 0.25, kStart);
  MonoTime now = kStart;
  Duration stopped{};
  for (int round = 0; round < 10; ++round) {
    now = *throttles.next_due();
    EXPECT_THAT(throttles.due(now), ElementsAre(Throttles::Order{kSlowed, true}));
    EXPECT_THAT(throttles.stopped(), ElementsAre(kSlowed));
    const MonoTime since = now;
    now = *throttles.next_due();
    EXPECT_THAT(throttles.due(now), ElementsAre(Throttles::Order{kSlowed, false}));
    stopped += now - since;
  }
  EXPECT_EQ(now - kStart, seconds(1));
  EXPECT_EQ(stopped, milliseconds(750));
  EXPECT_EQ(throttles.held_back(kSlowed, now), stopped);
}

TEST(Throttle, ItEndsWithTheProcessRunning) {
  Throttles throttles;
  throttles.set(kSlowed, 0.5, kStart);
  EXPECT_EQ(throttles.due(kStart + milliseconds(50)).size(), 1U);
  throttles.set(kSlowed, 1, kStart + milliseconds(60));
  EXPECT_THAT(throttles.due(kStart + milliseconds(60)),
              ElementsAre(Throttles::Order{kSlowed, false}));
  EXPECT_EQ(throttles.next_due(), std::nullopt);
  EXPECT_EQ(throttles.held_back(kSlowed, kStart + seconds(9)), milliseconds(10));
  throttles.set(kSlowed, 0.5, kStart + seconds(10));
  EXPECT_EQ(throttles.next_due(), kStart + seconds(10) + milliseconds(50)) << "and may come again";
}

TEST(Throttle, AnAgentThatComesLateStopsItForNoLongerThanItsPart) {
  Throttles throttles;
  throttles.set(kSlowed, 0.5, kStart);
  const MonoTime late = kStart + seconds(3);
  EXPECT_THAT(throttles.due(late), ElementsAre(Throttles::Order{kSlowed, true}));
  EXPECT_EQ(throttles.next_due(), late + milliseconds(50));
}

TEST(Throttle, AnEndedProcessIsForgotten) {
  Throttles throttles;
  throttles.set(kSlowed, 1, kStart);
  EXPECT_EQ(throttles.next_due(), std::nullopt);
  throttles.set(kSlowed, 0.5, kStart);
  throttles.forget(kSlowed);
  EXPECT_THAT(throttles.due(kStart + seconds(1)), IsEmpty());
  EXPECT_EQ(throttles.held_back(kSlowed, kStart + seconds(1)), Duration{});
}

}  // namespace
}  // namespace antdt::antdtd
