#include "ctl/monitor/window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace antdt::ctl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr MonoTime kStart{std::chrono::hours(1)};
BatchSums batches(std::uint64_t n) { return {n, 10 * n, n, 2 * n, 3 * n}; }

TEST(SlidingWindow, SumsWhatIsInside) {
  SlidingWindow window(seconds(10), 10);
  window.add(batches(1), kStart);
  window.add(batches(2), kStart + seconds(4));
  EXPECT_EQ(window.sum(seconds(10), kStart + seconds(5)).batches, 3u);
  EXPECT_EQ(window.sum(seconds(10), kStart + seconds(5)).samples, 30u);
  EXPECT_EQ(window.sum(seconds(2), kStart + seconds(5)).batches, 2u);
}

TEST(SlidingWindow, ForgetsWhatSlidOut) {
  SlidingWindow window(seconds(10), 10);
  window.add(batches(5), kStart);
  EXPECT_EQ(window.sum(seconds(10), kStart + seconds(11)).batches, 0u);
  window.add(batches(1), kStart + std::chrono::hours(24));
  EXPECT_EQ(window.sum(seconds(10), kStart + std::chrono::hours(24)).batches, 1u);
}

TEST(SlidingWindow, IsEmptyBeforeTheFirstAddition) {
  const SlidingWindow window(seconds(1), 4);
  EXPECT_EQ(window.sum(seconds(1), kStart).batches, 0u);
}

TEST(SlidingWindow, StretchesUntilItHoldsEnoughBatches) {
  SlidingWindow window(seconds(40), 40);
  for (int i = 0; i < 10; ++i) window.add(batches(1), kStart + seconds(3 * i));
  const MonoTime now = kStart + seconds(27);
  EXPECT_EQ(window.at_least(1, seconds(3), now).sums.batches, 2u);
  const auto four = window.at_least(4, seconds(3), now);
  EXPECT_EQ(four.sums.batches, 4u);
  EXPECT_EQ(four.from, kStart + seconds(18));
}

TEST(SlidingWindow, ForgetsWhatLiesBeforeATime) {
  SlidingWindow window(seconds(10), 10);
  for (int i = 0; i < 10; ++i) window.add(batches(1), kStart + seconds(i));
  window.forget_before(kStart + seconds(7));
  EXPECT_EQ(window.sum(seconds(10), kStart + seconds(9)).batches, 3u);
}

TEST(SlidingWindow, AgreesWithAListToOneBucketsWidth) {
  std::mt19937 random(9);
  SlidingWindow window(seconds(10), 20);
  std::vector<MonoTime> list;
  MonoTime now = kStart;
  for (int i = 0; i < 3000; ++i) {
    now += milliseconds(random() % 700);
    window.add(batches(1), now);
    list.push_back(now);
    const Duration length = milliseconds(500 + random() % 8000);
    const auto count = [&](Duration d) {
      return static_cast<std::uint64_t>(
          std::count_if(list.begin(), list.end(), [&](MonoTime t) { return t > now - d; }));
    };
    const std::uint64_t got = window.sum(length, now).batches;
    ASSERT_GE(got, count(length - milliseconds(500)));
    ASSERT_LE(got, count(length + milliseconds(500)));
  }
}

}  // namespace
}  // namespace antdt::ctl
