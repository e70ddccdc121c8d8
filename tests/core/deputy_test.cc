#include "core/threads/deputy.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace antdt {
namespace {

constexpr Duration kPatience = std::chrono::milliseconds(4);

class DeputyTest : public testing::Test {
 protected:
  SteadyClock clock_;
  Deputy deputy_{clock_, kPatience};
};

TEST_F(DeputyTest, TheCallerMakesTheCall) {
  std::thread::id caller;
  deputy_.run(
      "committing", [&] { caller = std::this_thread::get_id(); }, [] {});
  EXPECT_EQ(caller, std::this_thread::get_id());
  EXPECT_FALSE(deputy_.present());
}

TEST_F(DeputyTest, ItActsAgainAndAgainWhileACallLasts) {
  std::promise<void> thrice;
  int acted = 0;
  Deputy::Present seen;
  deputy_.run(
      "committing", [&] { thrice.get_future().wait(); },
      [&] {
        seen = deputy_.present().value_or(Deputy::Present{});
        if (++acted == 3) thrice.set_value();
      });
  EXPECT_GE(acted, 3);
  EXPECT_EQ(seen.what, "committing");
  EXPECT_GE(seen.lasting, 3 * kPatience);
  const int then = acted;
  deputy_.run(
      "committing", [] {}, [&] { ++acted; });
  EXPECT_EQ(acted, then);
}

TEST_F(DeputyTest, TheLoopGoesOnWhenTheDeputyHasFinished) {
  for (int i = 0; i < 20; ++i) {
    std::promise<void> begins;
    bool begun = false;
    bool finished = false;
    deputy_.run(
        "committing", [&] { begins.get_future().wait(); },
        [&] {
          if (!std::exchange(begun, true)) begins.set_value();
          finished = false;
          std::this_thread::yield();  // the call returns about now
          finished = true;
        });
    EXPECT_TRUE(finished);
  }
}

TEST_F(DeputyTest, WhatTheLoopDidBeforeACallIsSeenByTheDeputy) {
  int plain = 0;
  for (int i = 1; i <= 20; ++i) {
    std::promise<int> sees;
    bool told = false;
    plain = i;
    deputy_.run(
        "committing", [&] { EXPECT_EQ(sees.get_future().get(), i); },
        [&] {
          if (!std::exchange(told, true)) sees.set_value(plain++);
        });
    EXPECT_EQ(plain, i + 1);
  }
}

}  // namespace
}  // namespace antdt
