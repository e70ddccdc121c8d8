#include "trainer/c_api/program/upcoming.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <future>
#include <optional>

namespace antdt::capi {
namespace {

using testing::ElementsAre;

constexpr Generation kGeneration{3};
constexpr std::uint64_t kPhase = 2;
constexpr Duration kPatience = std::chrono::seconds(20);  // bounds a failure

class UpcomingTest : public testing::Test {
 protected:
  UpcomingTest() { upcoming.begin(kGeneration, kPhase); }
  std::optional<std::uint64_t> tell(Duration timeout) {
    return upcoming.tell(kGeneration, kPhase, from, some, timeout);
  }

  Upcoming upcoming;
  std::uint64_t from = 0;
  std::array<std::uint64_t, 2> some{};
};

TEST_F(UpcomingTest, WhatWasTakenIsToldInItsOrder) {
  upcoming.add(std::array<std::uint64_t, 3>{7, 5, 6});
  EXPECT_EQ(tell(kPatience), 2U);
  EXPECT_THAT(some, ElementsAre(7, 5));
  from = 2;
  EXPECT_EQ(tell(kPatience), 1U);
  EXPECT_EQ(some[0], 6U);
}

// What was given is not told any more, and the question waits for what is not given yet.
TEST_F(UpcomingTest, AfterAllThatWasTakenIsGivenAQuestionWaitsForMore) {
  upcoming.add(std::array<std::uint64_t, 2>{7, 5});
  EXPECT_EQ(upcoming.give(2), 0U);
  EXPECT_EQ(tell(std::chrono::milliseconds(1)), 0U);
  EXPECT_EQ(from, 0U);
  std::future<std::optional<std::uint64_t>> answer =
      std::async(std::launch::async, [this] { return tell(kPatience); });
  EXPECT_EQ(answer.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  upcoming.add(std::array<std::uint64_t, 1>{6});
  EXPECT_EQ(answer.get(), 1U);
  EXPECT_EQ(from, 2U);
  EXPECT_EQ(some[0], 6U);
}

TEST_F(UpcomingTest, TheEndOfThePhaseEndsAQuestion) {
  auto answer = std::async(std::launch::async, [this] { return tell(kPatience); });
  upcoming.end();
  EXPECT_EQ(answer.get(), std::nullopt);
  EXPECT_EQ(upcoming.tell(kGeneration, kPhase + 1, from, some, kPatience), std::nullopt);
}

}  // namespace
}  // namespace antdt::capi
