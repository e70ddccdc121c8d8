#include "ctl/job/metrics/hook_queue.h"

#include <gtest/gtest.h>

#include <string>

namespace antdt::ctl {
namespace {

using std::chrono::seconds;

class HookQueueTest : public testing::Test {
 protected:
  // The event that a hook is started for now; "" if none is.
  std::string next() {
    const auto call = queue_.next(now_);
    missed_ = call ? call->missed : 0;
    return call ? call->event : "";
  }
  HookQueue queue_;
  MonoTime now_{seconds(100)};
  std::uint64_t missed_ = 0;
};

TEST_F(HookQueueTest, OneHookRunsAtATimeAndEventsKeepTheirOrder) {
  queue_.offer("a");
  queue_.offer("b");
  EXPECT_EQ(next(), "a");
  EXPECT_EQ(next(), "") << "the first one still runs";
  queue_.hook_ended();
  EXPECT_EQ(next(), "b");
  queue_.hook_ended();
  EXPECT_EQ(next(), "");
  EXPECT_TRUE(queue_.idle());
}

TEST_F(HookQueueTest, AHookThatTakesTooLongIsOverdue) {
  queue_.offer("a");
  EXPECT_FALSE(queue_.overdue(now_ + seconds(3600))) << "nothing runs";
  EXPECT_EQ(next(), "a");
  EXPECT_FALSE(queue_.overdue(now_ + HookQueue::kPatience - seconds(1)));
  EXPECT_TRUE(queue_.overdue(now_ + HookQueue::kPatience));
  EXPECT_FALSE(queue_.idle());
}

TEST_F(HookQueueTest, WithoutRoomTheOldestIsDroppedAndTheNextCallTellsHowMany) {
  queue_.offer("first");
  EXPECT_EQ(next(), "first");
  for (std::size_t i = 0; i < HookQueue::kMostWaiting + 3; ++i) queue_.offer(std::to_string(i));
  queue_.hook_ended();
  EXPECT_EQ(next(), "3");
  EXPECT_EQ(missed_, 3U);
  queue_.hook_ended();
  EXPECT_EQ(next(), "4");
  EXPECT_EQ(missed_, 0U) << "told once";
}

TEST_F(HookQueueTest, OnceTheJobHasEndedOnlyTheLastEventIsOfUse) {
  for (const char* event : {"running", "old", "older", "end"}) queue_.offer(event);
  EXPECT_EQ(next(), "running");
  queue_.job_ended();
  queue_.hook_ended();
  EXPECT_EQ(next(), "end");
  EXPECT_EQ(missed_, 2U);
  queue_.hook_ended();
  EXPECT_TRUE(queue_.idle());
}

TEST_F(HookQueueTest, WhatHappensInEveryRunWakesNobody) {
  for (const char* kind : {"checkpoint", "epoch", "evaluated", "phase", "worker-started", "joined",
                           "generation", "history", "hook", "metrics"}) {
    EXPECT_FALSE(is_for_hooks(kind, JobState::kTraining)) << kind;
  }
  for (const char* kind : {"end", "hang", "host-lost", "verdict", "action", "checkpoint-failed"}) {
    EXPECT_TRUE(is_for_hooks(kind, JobState::kTraining)) << kind;
  }
}

TEST_F(HookQueueTest, TheExitOfAWorkerIsToldUnlessTheJobIsEnding) {
  EXPECT_TRUE(is_for_hooks("worker-exited", JobState::kTraining));
  EXPECT_FALSE(is_for_hooks("worker-exited", JobState::kFinishing));
  EXPECT_FALSE(is_for_hooks("worker-exited", JobState::kStopping));
}

}  // namespace
}  // namespace antdt::ctl
