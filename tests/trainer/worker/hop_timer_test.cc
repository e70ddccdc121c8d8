// When hops are measured.
#include "trainer/worker/member/hop_timer.h"

#include <gtest/gtest.h>

namespace antdt::worker {
namespace {

using std::chrono::milliseconds;

TEST(HopTimer, AMemberThatWaitsWantsItsHopMeasuredNowAndThen) {
  const MonoTime start{std::chrono::hours(1)};
  HopTimer timer(start);
  const auto at = [&](int ms) { return start + milliseconds(ms); };
  timer.waited(milliseconds(30), at(299));
  EXPECT_FALSE(timer.wants(at(300))) << "it waits a tenth of the time, and less so far";
  timer.waited(milliseconds(200), at(600));
  EXPECT_TRUE(timer.wants(at(600)));
  timer.measured(at(600), at(700));
  EXPECT_FALSE(timer.wants(at(900)));
  timer.waited(milliseconds(500), at(1200));
  EXPECT_FALSE(timer.wants(at(1199))) << "measuring takes a sixth at most";
  EXPECT_TRUE(timer.wants(at(1200)));
}

TEST(HopTimer, WhatTakesAsLongAsBeforeIsMeasuredLessAndLessOften) {
  MonoTime now{std::chrono::hours(1)};
  HopTimer timer(now);
  // Returns after how many milliseconds it is measured, which takes so many.
  const auto measure_next = [&](int took) {
    const MonoTime since = now;
    do {
      now += milliseconds(10);
      timer.waited(milliseconds(9), now);
    } while (!timer.wants(now));
    const auto after = std::chrono::duration_cast<milliseconds>(now - since).count();
    timer.measured(now, now + milliseconds(took));
    now += milliseconds(took);
    return after;
  };
  measure_next(100);
  EXPECT_EQ(measure_next(120), 500);
  EXPECT_EQ(measure_next(100), 10 * 120);
  EXPECT_EQ(measure_next(100), 20 * 100);
  EXPECT_EQ(measure_next(100), 40 * 100);
  EXPECT_EQ(measure_next(300), 40 * 100);
  EXPECT_EQ(measure_next(300), 5 * 300) << "it has changed";
  EXPECT_EQ(measure_next(300), 10 * 300);
}

TEST(HopTimer, AWaitThatBeginsAfterALongTimeAsksForTheHopTimesAtOnce) {
  const MonoTime start{std::chrono::hours(1)};
  HopTimer timer(start);
  MonoTime now = start;
  const auto step = [&](int computing, int waiting) {
    now += milliseconds(computing + waiting);
    timer.waited(milliseconds(waiting), now);
  };
  for (int i = 0; i < 1000; ++i) step(20, 1);
  EXPECT_FALSE(timer.wants(now));
  for (int i = 0; i < 5; ++i) step(20, 20);
  EXPECT_TRUE(timer.wants(now));
  for (int i = 0; i < 50; ++i) step(20, 1);
  EXPECT_FALSE(timer.wants(now)) << "and no longer when that is over";
}

}  // namespace
}  // namespace antdt::worker
