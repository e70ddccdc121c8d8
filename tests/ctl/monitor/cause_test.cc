// Why a worker is slow: each rule, and the cases in which it must not apply.
#include "ctl/monitor/cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/monitor/looks.h"

namespace antdt::ctl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// Three times slower: two thirds of its time are lost in computing.
const OwnTime kComputesLonger{
    .data_s = 1e-4, .compute_s = 2.9e-3, .peers_data_s = 1e-4, .peers_compute_s = 9e-4};
const OwnTime kReadsLonger{
    .data_s = 2.1e-3, .compute_s = 9e-4, .peers_data_s = 1e-4, .peers_compute_s = 9e-4};

HostSigns looked() { return {.looked = true}; }
wire::Metrics a_look() {
  wire::Metrics metrics;
  metrics.probe.looked_us = 1'000'000;
  return metrics;
}
HostSigns with(double HostSigns::*field, double share) {
  HostSigns signs = looked();
  signs.*field = share;
  return signs;
}

TEST(CauseOfSlowness, WithoutEvidenceTheCauseIsThePhaseThatLostTime) {
  EXPECT_EQ(explain_slowness(kComputesLonger, {}, {}).cause, Cause::kCompute);
  EXPECT_EQ(explain_slowness(kReadsLonger, {}, {}).cause, Cause::kData);
  EXPECT_THAT(explain_slowness(kReadsLonger, {}, {}).seen, HasSubstr("tells nothing"));
  EXPECT_EQ(explain_slowness(kComputesLonger, looked(), looked()).cause, Cause::kCompute);
}

TEST(CauseOfSlowness, EqualLossesInBothPhasesGiveAnUnknownCauseWithTheEvidence) {
  const OwnTime both{2e-3, 2e-3, 1e-3, 1e-3};
  const Explained found = explain_slowness(both, with(&HostSigns::io, 0.3), looked());
  EXPECT_EQ(found.cause, Cause::kUnknown);
  EXPECT_THAT(found.seen, HasSubstr("2 ms for its data and 2 ms to compute, the others' 1 and 1"));
  EXPECT_THAT(found.seen, HasSubstr("waited for a disk 30% of the time"));
}

TEST(CauseOfSlowness, EvidenceOfTheHostExplainsFromHalfOfTheLostTimeOn) {
  const struct {
    double HostSigns::*field;
    Cause cause;
  } kinds[] = {{&HostSigns::throttled, Cause::kThrottled},
               {&HostSigns::stolen, Cause::kStolen},
               {&HostSigns::memory, Cause::kMemory}};
  for (const auto& kind : kinds) {
    EXPECT_EQ(explain_slowness(kComputesLonger, with(kind.field, 0.4), looked()).cause, kind.cause);
    EXPECT_EQ(explain_slowness(kComputesLonger, with(kind.field, 0.3), looked()).cause,
              Cause::kCompute);
    EXPECT_EQ(explain_slowness(kReadsLonger, with(kind.field, 0.4), looked()).cause, kind.cause)
        << "it slows reading as well";
  }
}

TEST(CauseOfSlowness, ClocksHeldDownSlowComputingAndNotReading) {
  const HostSigns held = with(&HostSigns::clocks, 1);
  EXPECT_EQ(explain_slowness(kComputesLonger, held, looked()).cause, Cause::kClocks);
  EXPECT_EQ(explain_slowness(kReadsLonger, held, looked()).cause, Cause::kData);
  EXPECT_EQ(explain_slowness(kComputesLonger, held, held).cause, Cause::kCompute);
}

TEST(CauseOfSlowness, EvidenceThatAllPeersShowExplainsNothing) {
  const HostSigns all = with(&HostSigns::stolen, 0.4);
  EXPECT_EQ(explain_slowness(kComputesLonger, all, all).cause, Cause::kCompute);
}

TEST(CauseOfSlowness, WaitingForACpuCountsByWhatItWantedAndByTheTime) {
  HostSigns contended = looked();
  contended.queued = 0.7;
  contended.starved = 0.6;
  EXPECT_EQ(explain_slowness(kComputesLonger, contended, looked()).cause, Cause::kContended);
  contended.queued = 0.05;  // it wants little CPU time, and waits for most of it
  EXPECT_EQ(explain_slowness(kComputesLonger, contended, looked()).cause, Cause::kCompute);
  contended.queued = 0.7;  // many threads wait a little each
  contended.starved = 0.1;
  EXPECT_EQ(explain_slowness(kComputesLonger, contended, looked()).cause, Cause::kCompute);
}

TEST(CauseOfSlowness, OfAWorkerThatWaitsForOthersLessTimeIsLost) {
  OwnTime seldom = kComputesLonger;
  seldom.busy = 0.3;
  EXPECT_EQ(explain_slowness(seldom, with(&HostSigns::throttled, 0.12), looked()).cause,
            Cause::kThrottled);
}

TEST(CauseOfSlowness, TheUsualValueIsTheMedianOfTheMeasuredOnes) {
  std::vector<HostSigns> all(5, looked());
  for (std::size_t i = 0; i < all.size(); ++i) all[i].stolen = 0.1 * static_cast<double>(i);
  all[4].looked = false;
  EXPECT_DOUBLE_EQ(usual_signs(all).stolen, 0.1);
  EXPECT_FALSE(usual_signs({HostSigns{}, HostSigns{}}).looked);
}

TEST(CauseOfSlowness, PartsAreOfTheTimeThatTheHostLooked) {
  const HostSigns signs = signs_of({.looked_us = 1000,
                                    .ran_us = 100,
                                    .queued_us = 300,
                                    .throttled_us = 500,
                                    .stolen_us = 250,
                                    .cpu_stalled_us = 0,
                                    .io_stalled_us = 20,
                                    .memory_stalled_us = 10,
                                    .clocks_us = 900});
  EXPECT_TRUE(signs.looked);
  EXPECT_DOUBLE_EQ(signs.throttled, 0.5);
  EXPECT_DOUBLE_EQ(signs.stolen, 0.25);
  EXPECT_DOUBLE_EQ(signs.queued, 0.3);
  EXPECT_DOUBLE_EQ(signs.starved, 0.75);
  EXPECT_DOUBLE_EQ(signs.io, 0.02);
  EXPECT_DOUBLE_EQ(signs.memory, 0.01);
  EXPECT_DOUBLE_EQ(signs.clocks, 0.9);
  EXPECT_FALSE(signs_of({}).looked);
}

// ---------------------------------------------------------------------- looks

wire::Metrics look(std::uint64_t throttled_us) {
  wire::Metrics metrics;
  metrics.probe.looked_us = 1'000'000;
  metrics.probe.throttled_us = throttled_us;
  return metrics;
}
wire::Metrics hops(std::uint32_t count, std::uint64_t us, std::uint64_t least_us) {
  wire::Metrics metrics;
  metrics.sum.hops = count;
  metrics.sum.hop_us = us;
  metrics.sum.hop_least_us = least_us;
  return metrics;
}
const MonoTime kBegin = MonoTime{} + std::chrono::hours(3);

TEST(RecentLooks, TheNewestCountThatHoldHalfAWindow) {
  Looks looks(seconds(4));
  for (int i = 1; i <= 4; ++i) looks.add(look(i <= 2 ? 0 : 600'000), kBegin + seconds(i));
  EXPECT_DOUBLE_EQ(looks.signs({}, kBegin + seconds(4)).throttled, 0.6);
  EXPECT_FALSE(looks.signs({}, kBegin + seconds(40)).looked) << "nothing was said lately";
}

TEST(RecentLooks, LooksFromBeforeAChangeCountOnlyWithoutLaterOnes) {
  Looks looks(seconds(8));
  looks.add(look(0), kBegin + seconds(1));
  looks.add(look(400'000), kBegin + seconds(2));
  const MonoTime change = kBegin + milliseconds(1500);
  EXPECT_DOUBLE_EQ(looks.signs(change, kBegin + seconds(2)).throttled, 0.4) << "it has to do";
  looks.add(look(900'000), kBegin + seconds(3));
  EXPECT_DOUBLE_EQ(looks.signs(change, kBegin + seconds(3)).throttled, 0.9);
}

TEST(RecentLooks, AHopIsMeasuredOverTheWindowOrTwoMeasurements) {
  Looks looks(seconds(1));
  looks.add(hops(1, 900, 900), kBegin);
  looks.add(hops(1, 100, 100), kBegin + milliseconds(1900));
  Hop hop = looks.hop(kBegin + seconds(2));
  EXPECT_EQ(hop.measured, 2U);
  EXPECT_DOUBLE_EQ(hop.mean_s, 500e-6);
  EXPECT_DOUBLE_EQ(hop.least_s, 100e-6);
  looks.add(hops(2, 600, 200), kBegin + seconds(2));
  hop = looks.hop(kBegin + seconds(2));
  EXPECT_EQ(hop.measured, 3U) << "the first is too old now";
  looks.forget_hops();
  EXPECT_EQ(looks.hop(kBegin + seconds(2)).measured, 0U);
}

TEST(Looks, AWorkersHostWasSeenSinceItsNewestLookIsMostlyOfTheTimeAfter) {
  Looks looks(seconds(1));
  const MonoTime start{seconds(100)};
  const auto at = [&](int ms) { return start + milliseconds(ms); };
  looks.add(a_look(), at(1000));
  EXPECT_TRUE(looks.seen_since(at(500), at(1000)));
  EXPECT_FALSE(looks.seen_since(at(600), at(1000)));
  looks.add(a_look(), at(2000));
  EXPECT_TRUE(looks.seen_since(at(600), at(2000)));
}

TEST(Looks, AHostThatDoesNotLookIsNotWaitedForLongerThanTwoSeconds) {
  Looks looks(seconds(1));
  const MonoTime start{seconds(100)};
  EXPECT_FALSE(looks.seen_since(start, start));
  looks.add({}, start);
  EXPECT_FALSE(looks.seen_since(start, start + milliseconds(1900)));
  EXPECT_TRUE(looks.seen_since(start, start + seconds(2)));
  EXPECT_TRUE(looks.seen_since(start + seconds(9), start + seconds(9))) << "it never looked";
  looks.add(a_look(), start + seconds(10));
  EXPECT_FALSE(looks.seen_since(start + seconds(30), start + seconds(31)));
  EXPECT_TRUE(looks.seen_since(start + seconds(30), start + seconds(32))) << "it does not any more";
}

}  // namespace
}  // namespace antdt::ctl
