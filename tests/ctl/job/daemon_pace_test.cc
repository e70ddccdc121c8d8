#include "ctl/job/daemon_pace.h"

#include <gtest/gtest.h>

namespace antdt::ctl::job {
namespace {

const MonoTime kNow = MonoTime{} + std::chrono::hours(1);

TEST(JournalPause, ItBeginsOnceAndRoomIsLookedForNowAndThen) {
  JournalPause pause;
  EXPECT_FALSE(pause.look(kNow));
  EXPECT_TRUE(pause.begin(kNow));
  EXPECT_FALSE(pause.begin(kNow));
  EXPECT_FALSE(pause.look(kNow + JournalPause::kLookForRoom / 2));
  EXPECT_TRUE(pause.look(kNow + JournalPause::kLookForRoom));
  EXPECT_FALSE(pause.look(kNow + JournalPause::kLookForRoom));
  pause.end();
  EXPECT_FALSE(pause.paused());
  EXPECT_TRUE(pause.begin(kNow));
}

TEST(JournalPause, WhatMakesTheJournalGrowIsIgnoredMeanwhile) {
  JournalPause pause;
  EXPECT_FALSE(pause.ignores<wire::Fetch>());
  ASSERT_TRUE(pause.begin(kNow));
  EXPECT_TRUE(pause.ignores<wire::Fetch>());
  EXPECT_TRUE(pause.ignores<wire::Progress>());
  EXPECT_FALSE(pause.ignores<wire::CheckpointWritten>());
}

}  // namespace
}  // namespace antdt::ctl::job
