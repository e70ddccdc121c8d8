// A job that runs for days with everything that a job daemon stores, none of which grows with time.
// bench/programs/month_bench.cc plays a month of 1,000 workers.
#include "sim/fleet/long_run.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/sanitized.h"

namespace antdt::fleet {
namespace {

using ::testing::IsEmpty;

// A sanitizer has several times the memory of the program that it watches.
std::vector<std::string> exceeded_here(const LongDay& day, const LongRun& run) {
  auto found = exceeded(day, run);
  std::erase_if(found, [](const std::string& what) {
    return kSanitized && what.starts_with("resident memory");
  });
  return found;
}

TEST(LongRunTest, WhatAJobDaemonKeepsDoesNotGrowFromOneHalfOfARunToTheOther) {
  LongRun run;
  run.workers = all_or_some(40U, 8U);
  run.days = all_or_some(4.0, 2.0);
  run.history_bytes = 8ULL << 20;
  run.step_s = 120;
  run.failure_every_s = 600;
  std::vector<LongDay> days;
  const Status played = play(run, [&](const LongDay& day) {
    days.push_back(day);
    EXPECT_THAT(exceeded_here(day, run), IsEmpty()) << "on day " << day.day;
  });
  ASSERT_TRUE(played) << played.error().message;
  ASSERT_EQ(days.size(), static_cast<std::size_t>(run.days));
  const LongDay& half = days[days.size() / 2 - 1];
  const LongDay& all = days.back();
  // Twice as many events,
  EXPECT_GT(all.actions, 19 * half.actions / 10);
  EXPECT_GT(all.failures, 19 * half.failures / 10);
  EXPECT_GT(all.generations, 18 * half.generations / 10);
  EXPECT_GT(all.incarnations, half.incarnations);
  // and no larger turns, except for numbers with one more digit and words that differ.
  EXPECT_LE(all.turn_p99, half.turn_p99 + half.turn_p99 / 20);
  EXPECT_LE(all.turn_most, half.turn_most + half.turn_most / 10);
  EXPECT_LE(all.image, half.image + half.image / 10);
  // The snapshot has the newest 10,000 actions, which a short run reaches only in its second half,
  // and the newest 2,000 failures, which this run does not reach.
  constexpr std::uint64_t kActions = 10'000;
  const std::uint64_t actions = std::min(all.actions, kActions) - std::min(half.actions, kActions);
  const std::uint64_t failures = all.failures - half.failures;
  const std::uint64_t epochs = all.epochs - half.epochs;
  EXPECT_LE(all.snapshot, half.snapshot + actions * 250 + failures * 1200 + epochs * 200 + 64'000);
}

}  // namespace
}  // namespace antdt::fleet
