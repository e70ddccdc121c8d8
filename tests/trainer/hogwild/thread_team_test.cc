#include "trainer/hogwild/thread_team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace antdt::hogwild {
namespace {

using ::testing::Each;

TEST(ThreadTeam, EachPartRunsOnceInEachRoundAndAlwaysOnTheSameThread) {
  ThreadTeam team(3);
  ASSERT_EQ(team.size(), 3U);
  std::vector<int> rounds(3);
  std::vector<std::set<std::thread::id>> threads(3);
  for (int round = 1; round <= 200; ++round) {
    team.run([&](std::size_t part) {
      ++rounds[part];
      threads[part].insert(std::this_thread::get_id());
    });
    EXPECT_THAT(rounds, Each(round)) << "run() returns when all are done";
  }
  std::set<std::thread::id> all;
  for (const auto& of_part : threads) {
    EXPECT_EQ(of_part.size(), 1U);
    all.insert(of_part.begin(), of_part.end());
  }
  EXPECT_EQ(all.size(), 3U);
  EXPECT_TRUE(threads[0].contains(std::this_thread::get_id())) << "the caller has a part";
}

// Each part waits for the others: if they ran one after another, this would not end.
TEST(ThreadTeam, PartsRunAtTheSameTime) {
  ThreadTeam team(4);
  std::atomic<std::size_t> here = 0;
  team.run([&](std::size_t) {
    ++here;
    here.notify_all();
    for (std::size_t now = here; now < 4; now = here) here.wait(now);
  });
  EXPECT_EQ(here, 4U);
}

TEST(ThreadTeam, AThreadBeginsOnceBeforeItsFirstPart) {
  std::atomic<int> begun = 0;
  thread_local bool ready = false;
  ThreadTeam team(3, [&] {
    ready = true;
    ++begun;
  });
  EXPECT_EQ(begun, 2) << "all but the caller";
  std::vector<int> were_ready(3);
  for (int round = 0; round < 2; ++round) {
    team.run([&](std::size_t part) { were_ready[part] += ready ? 1 : 0; });
  }
  EXPECT_EQ(were_ready, (std::vector<int>{0, 2, 2}));
  EXPECT_EQ(begun, 2);
}

TEST(ThreadTeam, OfOneIsTheCaller) {
  ThreadTeam team(1, [] { FAIL() << "there is no other thread"; });
  std::thread::id on;
  team.run([&](std::size_t part) {
    EXPECT_EQ(part, 0U);
    on = std::this_thread::get_id();
  });
  EXPECT_EQ(on, std::this_thread::get_id());
}

}  // namespace
}  // namespace antdt::hogwild
