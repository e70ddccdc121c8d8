#include "ctl/monitor/monitor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/ctl/control/virtual_cluster.h"

namespace antdt::ctl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::VirtualCluster;
using testing::w;

// Four members, reports once a second, a window of 4 s and one of 20 s.
class MonitorTest : public ::testing::Test {
 protected:
  MonitorTest() : monitor_(config()) { set_members(1); }

  static MonitorConfig config() {
    MonitorConfig c;
    c.transient_window = seconds(4);
    c.persistent_window = seconds(20);
    return c;
  }
  void set_members(std::uint32_t attempt_of_w0) {
    monitor_.set_members({{{w(0), Attempt{attempt_of_w0}}, "a"},
                          {{w(1), Attempt{1}}, "a"},
                          {{w(2), Attempt{1}}, "b"},
                          {{w(3), Attempt{1}}, "b"}});
  }
  struct Batch {
    double data_ms = 10;
    double compute_ms = 90;
    double wait_ms = 0;
    std::uint32_t samples = 100;
  };
  // A report over the last second.
  void report(std::uint32_t worker, std::uint32_t batches, Batch each, std::uint32_t attempt = 1) {
    wire::Report r;
    r.batches = batches;
    r.samples = std::uint64_t{each.samples} * batches;
    r.data_us = static_cast<std::uint64_t>(1000 * each.data_ms * batches);
    r.compute_us = static_cast<std::uint64_t>(1000 * each.compute_ms * batches);
    r.wait_us = static_cast<std::uint64_t>(1000 * each.wait_ms * batches);
    monitor_.step({{w(worker), Attempt{attempt}}, {r, 1000}}, now_);
  }
  // w0 takes the given time; the others need 10 + 90 ms, and wait for w0 if it needs longer.
  void run(int reports, double data_ms, double compute_ms) {
    for (int i = 0; i < reports; ++i) {
      now_ += seconds(1);
      report(0, 4, {data_ms, compute_ms});
      const double wait_ms = std::max(0.0, data_ms + compute_ms - 100);
      for (std::uint32_t o = 1; o < 4; ++o) report(o, 4, {10, 90, wait_ms});
      seen_ = monitor_.view(now_);
    }
  }

  MonoTime now_{std::chrono::hours(2)};
  Monitor monitor_;
  std::vector<WorkerView> seen_;
};

// Steps longer than the windows, which are looked at each second.
class LongStepsTest : public MonitorTest {
 protected:
  // w0 computes for so long, the others for `others_s`; all wait for the slowest.
  void step(int w0_s, int others_s) {
    const int longest = std::max(w0_s, others_s);
    for (int s = 0; s < longest; ++s) look();
    const auto ms = [](int of_s) { return 1000.0 * of_s; };
    for (std::uint32_t i = 0; i < 4; ++i) {
      const int own_s = i == 0 ? w0_s : others_s;
      report(i, 1, {0, ms(own_s), ms(longest - own_s)});
    }
  }
  void look() {
    now_ += seconds(1);
    seen_ = monitor_.view(now_);
    ++looks_;
    measured_ += seen_[0].measured && seen_[1].measured && seen_[0].speed_persistent > 0 ? 1 : 0;
    worst_ =
        std::max(worst_, seen_[0].verdict.kind == VerdictKind::kLeader ? VerdictKind::kNone
                                                                       : seen_[0].verdict.kind);
  }
  void forget_looks() {
    looks_ = measured_ = 0;
    worst_ = VerdictKind::kNone;
  }

  int looks_ = 0;
  int measured_ = 0;  // looks at which there were figures
  VerdictKind worst_ = VerdictKind::kNone;
};

TEST_F(LongStepsTest, AreMeasuredFromTheFourthOnAllTheTime) {
  for (const int step_s : {6, 8, 9, 10, 11, 60}) {
    set_members(100 + static_cast<std::uint32_t>(step_s));  // w0 is new, the others as they are
    monitor_.plan_changed(now_);
    forget_looks();
    const std::uint32_t attempt = 100 + static_cast<std::uint32_t>(step_s);
    for (int i = 0; i < 12; ++i) {
      for (int s = 0; s < step_s; ++s) look();
      for (std::uint32_t o = 0; o < 4; ++o)
        report(o, 1, {0, 1000.0 * step_s}, o == 0 ? attempt : 1);
    }
    EXPECT_EQ(measured_, looks_ - 4 * step_s) << "steps of " << step_s << " s";
    EXPECT_NEAR(seen_[0].speed_persistent, 100.0 / step_s, 0.01);
  }
}

TEST_F(LongStepsTest, AStragglerIsNamed) {
  for (int i = 0; i < 5; ++i) step(60, 30);
  look();
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kTransient);
  EXPECT_NEAR(seen_[0].verdict.severity, 2, 0.01);
  EXPECT_EQ(seen_[1].verdict.kind, VerdictKind::kNone);
  for (int i = 0; i < 9; ++i) step(60, 30);
  look();
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kDeterministic);
}

TEST_F(LongStepsTest, OneThatBecomesAStragglerIsPersistentOnceTwoSetsOfFiguresShowIt) {
  for (int i = 0; i < 10; ++i) step(30, 30);
  for (int i = 0; i < 6; ++i) step(60, 30);
  EXPECT_EQ(worst_, VerdictKind::kTransient);
  for (int i = 0; i < 6; ++i) step(60, 30);
  EXPECT_EQ(worst_, VerdictKind::kPersistent);
}

TEST_F(LongStepsTest, OneBatchThatTookLongIsNoPersistentStraggler) {
  for (int i = 0; i < 10; ++i) step(30, 30);
  step(120, 30);
  for (int i = 0; i < 10; ++i) step(30, 30);
  EXPECT_EQ(worst_, VerdictKind::kTransient);
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kNone);
}

TEST_F(LongStepsTest, WhatWasBeforeAPauseSaysNothing) {
  for (int i = 0; i < 10; ++i) step(30, 30);
  for (int s = 0; s < 600; ++s) look();
  EXPECT_FALSE(seen_[0].measured);
  step(30, 30);
  look();
  EXPECT_FALSE(seen_[0].measured) << "one batch since then";
}

// The worker is slow with a small part, and as fast as before from the moment at which it gets a
// larger part, so that no window shows the change.
TEST_F(MonitorTest, ALineThroughTwoSpeedsIsDropped) {
  const std::pair<std::uint32_t, double> parts[] = {{11, 78}, {14, 32}, {29, 62}, {34, 72}};
  for (const auto& [samples, ms] : parts) {
    monitor_.plan_changed(now_);
    for (int i = 0; i < 4; ++i) {
      now_ += seconds(1);
      for (std::uint32_t worker = 0; worker < 4; ++worker) {
        report(worker, 10, {0, worker == 0 ? ms : 70, 0, worker == 0 ? samples : 33});
      }
      seen_ = monitor_.view(now_);
      const auto& fit = seen_[0].fit;
      EXPECT_FALSE(fit && fit->fixed_s > 20e-3)
          << "at " << samples << " samples: fixed " << fit->fixed_s;
    }
  }
}

TEST_F(MonitorTest, SpeedIsSamplesOverOwnTimeNeverStepTime) {
  run(6, 10, 190);
  EXPECT_NEAR(seen_[0].speed_transient, 500, 1);
  EXPECT_NEAR(seen_[1].speed_transient, 1000, 1);
  EXPECT_NEAR(seen_[1].speed_persistent, 1000, 1);
  EXPECT_NEAR(seen_[1].wait_share, 0.5, 0.01);
  EXPECT_NEAR(seen_[1].data_share, 0.1, 0.01);
  EXPECT_NEAR(seen_[0].batch_s, 0.2, 0.001);
}

TEST_F(MonitorTest, TheCulpritIsNamedWithSeverityAndCauseAndNoVictimIs) {
  run(6, 10, 290);
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kTransient);
  EXPECT_NEAR(seen_[0].verdict.severity, 3, 0.01);
  EXPECT_EQ(seen_[0].verdict.cause, Cause::kCompute);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(seen_[i].verdict.kind, VerdictKind::kNone);
  run(6, 150, 90);
  EXPECT_EQ(seen_[0].verdict.cause, Cause::kData);
}

// If all members wait for something else anyway, a small difference becomes negligible, and a large
// one does not.
TEST_F(MonitorTest, AWorkerSlowInANegligiblePartOfTheStepIsNoStraggler) {
  const auto compute = [&](double w0_ms, double servers_ms) {
    for (int i = 0; i < 8; ++i) {
      now_ += seconds(1);
      report(0, 20, {0, w0_ms, servers_ms});
      for (std::uint32_t o = 1; o < 4; ++o) report(o, 20, {0, 1, servers_ms});
      seen_ = monitor_.view(now_);
    }
  };
  compute(1.8, 20);  // 4 % of a step
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kNone);
  EXPECT_NEAR(seen_[0].verdict.severity, 1.8, 0.01) << "and what is so is still said";
  compute(3, 20);  // 10 %
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kTransient);
  EXPECT_NEAR(seen_[0].verdict.severity, 3, 0.01);
  compute(1.4, 20);
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kNone);
  compute(1.4, 1);
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kTransient);
}

TEST_F(MonitorTest, SaysNothingBeforeThereAreEnoughBatches) {
  now_ += seconds(1);
  report(0, 3, {10, 990});
  for (std::uint32_t o = 1; o < 4; ++o) report(o, 3, {});
  seen_ = monitor_.view(now_);
  EXPECT_FALSE(seen_[0].measured);
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kNone);
}

TEST_F(MonitorTest, SlowFromTheStartForAPersistentWindowIsDeterministic) {
  run(30, 10, 190);
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kDeterministic);
}

TEST_F(MonitorTest, SlowSoonAfterItWasMeasuredAsFastAsTheOthersIsPersistent) {
  run(5, 10, 90);
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kNone);
  run(30, 10, 190);
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kPersistent);
}

TEST_F(MonitorTest, SlowLaterForAPersistentWindowIsPersistentAndEndsWithTheSlowness) {
  run(30, 10, 90);
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kNone);
  const MonoTime onset = now_;
  run(10, 10, 190);
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kTransient);
  EXPECT_LE(seen_[0].verdict.since - onset, seconds(6));
  run(20, 10, 190);
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kPersistent);
  run(8, 10, 90);
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kNone);
}

TEST_F(MonitorTest, AFasterWorkerIsALeader) {
  run(8, 5, 35);
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kLeader);
  EXPECT_NEAR(seen_[0].verdict.severity, 0.4, 0.01);
  EXPECT_EQ(seen_[1].verdict.kind, VerdictKind::kNone);
}

TEST_F(MonitorTest, ANewAttemptBeginsWithNothing) {
  run(8, 10, 290);
  set_members(2);
  seen_ = monitor_.view(now_);
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kNone);
  EXPECT_FALSE(seen_[0].measured);
  EXPECT_TRUE(seen_[1].measured);
  report(0, 40, {10, 290});  // a late report of the old attempt
  EXPECT_FALSE(monitor_.view(now_)[0].measured);
  report(0, 40, {}, 2);
  EXPECT_TRUE(monitor_.view(now_)[0].measured);
}

TEST_F(MonitorTest, AfterAPlanChangeOnlyReportsThatBeganLaterCount) {
  run(8, 10, 90);
  now_ += milliseconds(500);
  monitor_.plan_changed(now_);
  now_ += milliseconds(500);
  report(0, 8, {10, 290});  // its second began before the change
  EXPECT_FALSE(monitor_.view(now_)[0].measured);
  now_ += seconds(1);
  report(0, 8, {10, 140});
  EXPECT_NEAR(monitor_.view(now_)[0].speed_transient, 100 / 0.15, 1);
}

TEST_F(MonitorTest, FiguresComeFromAfterAChangeOfSpeed) {
  run(8, 10, 90);
  run(2, 10, 390);
  EXPECT_NEAR(seen_[0].speed_transient, 250, 5) << "two seconds into a window of four";
}

TEST_F(MonitorTest, AWorkerThatFallsSilentIsNotJudged) {
  run(8, 10, 290);
  for (int i = 0; i < 40; ++i) {
    now_ += seconds(1);
    for (std::uint32_t o = 1; o < 4; ++o) report(o, 4, {});
    seen_ = monitor_.view(now_);
  }
  EXPECT_FALSE(seen_[0].measured);
  EXPECT_EQ(seen_[0].verdict.kind, VerdictKind::kNone);
}

TEST_F(MonitorTest, TheLineOfBatchTimeNeedsTwoSizes) {
  for (int i = 0; i < 8; ++i) {
    now_ += seconds(1);
    report(0, 10, {0, 20 + 0.5 * 100, 0, 100});
  }
  EXPECT_FALSE(monitor_.view(now_)[0].fit);
  monitor_.plan_changed(now_);
  for (int i = 0; i < 8; ++i) {
    now_ += seconds(1);
    report(0, 10, {0, 20 + 0.5 * 150, 0, 150});
  }
  const auto fit = monitor_.view(now_)[0].fit;
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->fixed_s, 0.020, 1e-4);
  EXPECT_NEAR(fit->per_sample_s, 0.0005, 1e-6);
}

TEST_F(MonitorTest, OneMemberIsNeverJudged) {
  monitor_.set_members({{{w(0), Attempt{1}}, "a"}});
  report(0, 50, {10, 990});
  EXPECT_TRUE(monitor_.view(now_)[0].measured);
  EXPECT_EQ(monitor_.view(now_)[0].verdict.kind, VerdictKind::kNone);
}

// One case of a slowdown among eight noisy workers; the cluster is watched only.
void expect_culprit_named_first(std::uint64_t seed) {
  VirtualCluster::Options options;
  options.workers = 8;
  options.window_s = seed % 2 == 0 ? 1 : 4;
  options.seed = seed;
  options.mode = Mode::kObserve;
  VirtualCluster cluster(options);
  cluster.run_for(6 * options.window_s);
  const std::size_t culprit = seed % 8;
  const bool by_data = seed % 3 == 0;
  // The part for data stays 0.1 of the undisturbed time, or grows by all of the slowdown.
  cluster.workers[culprit].slowdown = 1.5;
  cluster.workers[culprit].data_part = (by_data ? 0.6 : 0.1) / 1.5;
  const auto named = [](const WorkerView& v) { return v.verdict.kind != VerdictKind::kNone; };
  const auto anyone_named = [&] {
    const auto& all = cluster.controller().view().workers;
    return std::any_of(all.begin(), all.end(), named);
  };
  ASSERT_GE(cluster.run_until(anyone_named, options.window_s + 2), 0) << "seed " << seed;
  for (int second = 0; second < 3; ++second) {
    for (std::size_t i = 0; i < 8; ++i) {
      ASSERT_EQ(named(cluster.view(i)), i == culprit) << "w" << i << " seed " << seed;
    }
    cluster.run_for(1);
  }
  EXPECT_EQ(cluster.view(culprit).verdict.cause, by_data ? Cause::kData : Cause::kCompute)
      << "seed " << seed;
}

TEST(Verdicts, TheCulpritIsNamedFirstInAHundredOfAHundredCasesAndAVictimNever) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) expect_culprit_named_first(seed);
}

TEST_F(MonitorTest, AWorkersDeviceIsInItsView) {
  monitor_.set_members({{{w(0), Attempt{1}}, "a", {"fast", 256}}, {{w(1), Attempt{1}}, "a"}});
  const auto seen = monitor_.view(now_);
  EXPECT_EQ(seen[0].device_class, "fast");
  EXPECT_EQ(seen[0].max_micro_batch, 256U);
  EXPECT_EQ(seen[1].device_class, "");
  EXPECT_EQ(seen[1].max_micro_batch, 0U);
}

TEST_F(MonitorTest, AWorkerThatRanOutOfMemoryHasTheSmallerBoundInItsView) {
  monitor_.set_members({{{w(0), Attempt{1}}, "a", {"fast", 256}}, {{w(1), Attempt{1}}, "a"}});
  for (std::uint32_t i = 0; i < 2; ++i) {
    Observation seen{{w(i), Attempt{1}}, {}};
    seen.metrics.sum.max_micro_batch = 300 - 200 * i;
    monitor_.step(seen, now_);
  }
  const auto seen = monitor_.view(now_);
  EXPECT_EQ(seen[0].max_micro_batch, 256U);
  EXPECT_EQ(seen[1].max_micro_batch, 100U);
}

}  // namespace
}  // namespace antdt::ctl
