#include "ctl/job/metrics/past_counts.h"

#include <gtest/gtest.h>

namespace antdt::ctl {
namespace {

using Kind = std::pair<std::string, std::string>;
const Kind kAdjusted{"adjust-batch", "applied"};

JobReport with_actions(std::uint64_t from, std::uint64_t to) {
  JobReport report;
  for (std::uint64_t n = from; n < to; ++n) {
    report.actions.push_back({n, 0, "adjust-batch", "w1", "", "applied"});
  }
  return report;
}

FailureRecord failure(double time_s, std::uint32_t worker, FailureClass cls) {
  return {time_s, WorkerId{'w', worker}, Attempt{1}, "a", static_cast<std::uint8_t>(cls), "", 1,
          {}};
}

TEST(PastCountsTest, WhatIsNotKeptAnyMoreStaysCounted) {
  PastCounts past;
  past.see(with_actions(1, 11));
  EXPECT_EQ(past.actions().at(kAdjusted), 10U);
  past.see(with_actions(8, 14));
  EXPECT_EQ(past.actions().at(kAdjusted), 13U);
  past.see(with_actions(8, 14));
  EXPECT_EQ(past.actions().at(kAdjusted), 13U) << "a report that is seen again adds nothing";
}

TEST(PastCountsTest, AFailureIsCountedOnceHoweverOftenItIsReported) {
  PastCounts past;
  JobReport report;
  report.failures = {failure(1, 0, FailureClass::kOom), failure(1, 1, FailureClass::kSignal)};
  past.see(report);
  report.failures[0].recovered_in_s = 2;  // its incident is over
  report.failures.push_back(failure(5, 0, FailureClass::kOom));
  past.see(report);
  EXPECT_EQ(past.failures().at("oom"), 2U);
  EXPECT_EQ(past.failures().at("signal"), 1U);
  report.failures.erase(report.failures.begin());
  past.see(report);
  EXPECT_EQ(past.failures().at("oom"), 2U);
}

TEST(PastCountsTest, EveryClassOfFailureIsThereFromTheStart) {
  PastCounts past;
  past.see({});
  EXPECT_EQ(past.failures().at("host"), 0U);
  EXPECT_EQ(past.failures().at("resumable"), 0U);
  EXPECT_FALSE(past.failures().contains("asked")) << "that is no failure";
}

}  // namespace
}  // namespace antdt::ctl
