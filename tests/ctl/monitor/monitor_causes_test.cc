// Verdicts with their causes: from what hosts measured, from the ring's hops, from devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/monitor/monitor.h"
#include "tests/ctl/control/virtual_cluster.h"

namespace antdt::ctl {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::w;

// Four members in a ring, reports once a second, a window of 4 s and one of 20 s. Own
// times are of a batch of 100 samples.
class MonitorCausesTest : public ::testing::Test {
 protected:
  static MonitorConfig config() {
    MonitorConfig c;
    c.transient_window = seconds(4);
    c.persistent_window = seconds(20);
    return c;
  }
  MonitorCausesTest() : monitor_(config()) { set_members({"", "", "", ""}); }

  void set_members(const std::vector<std::string>& devices) {
    std::vector<Monitor::MemberInfo> members;
    for (std::uint32_t i = 0; i < 4; ++i) {
      members.push_back({{w(i), Attempt{1}}, "a", {devices[i], 0}, i});
    }
    monitor_.set_members(members);
  }
  void set_hosts(const std::vector<std::string>& hosts) {
    std::vector<Monitor::MemberInfo> members;
    for (std::uint32_t i = 0; i < 4; ++i) members.push_back({{w(i), Attempt{1}}, hosts[i], {}, i});
    monitor_.set_members(members);
  }
  // It takes that long, and for most of the time beyond the others' 100 ms it has no CPU.
  void waits_for_a_cpu(std::size_t i, double own_ms) {
    own_ms_[i] = own_ms;
    const double part = 0.8 * (own_ms - 100) / own_ms;
    probes_[i].queued_us = static_cast<std::uint64_t>(1e6 * part);
    probes_[i].ran_us = static_cast<std::uint64_t>(1e6 * (1 - part));
  }
  [[nodiscard]] bool is_slow(std::size_t i) const {
    return verdict(i).kind != VerdictKind::kNone && verdict(i).kind != VerdictKind::kLeader;
  }
  void expect_nobody() const {
    for (std::size_t i = 0; i < 4; ++i) EXPECT_FALSE(is_slow(i)) << "w" << i << verdict(i).seen;
  }
  void run(int reports) {
    for (int i = 0; i < reports; ++i) {
      now_ += seconds(1);
      const double longest = *std::ranges::max_element(own_ms_) + collective_ms_;
      for (std::uint32_t o = 0; o < 4; ++o) report(o, longest);
      seen_ = monitor_.view(now_);
    }
  }
  [[nodiscard]] const Verdict& verdict(std::size_t i) const { return seen_[i].verdict; }
  void expect_only(std::size_t culprit, Cause cause) const {
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(verdict(i).kind != VerdictKind::kNone, i == culprit) << "w" << i;
    }
    EXPECT_EQ(verdict(culprit).cause, cause) << verdict(culprit).seen;
  }

  std::vector<double> own_ms_ = {100, 100, 100, 100};
  double collective_ms_ = 2;
  std::vector<wire::HostProbe> probes_{4, wire::HostProbe{.looked_us = 1'000'000}};
  std::vector<std::uint64_t> hop_us_ = {100, 100, 100, 100};
  std::uint32_t hops_ = 2;  // in a report
  MonoTime now_{std::chrono::hours(2)};
  Monitor monitor_;
  std::vector<WorkerView> seen_;

 private:
  void report(std::uint32_t o, double longest) {
    wire::Report r;
    r.batches = 4;
    r.samples = 400;
    r.data_us = 4000;
    r.compute_us = static_cast<std::uint64_t>(4000 * own_ms_[o]) - r.data_us;
    r.wait_us = static_cast<std::uint64_t>(4000 * (longest - own_ms_[o]));
    r.hops = hops_;
    r.hop_us = hops_ * hop_us_[o];
    r.hop_least_us = hop_us_[o];
    monitor_.step({{w(o), Attempt{1}}, {r, 1000, probes_[o]}}, now_);
  }
};

TEST_F(MonitorCausesTest, AThrottledWorkerIsCalledThrottledWithTheEvidence) {
  run(8);
  own_ms_[2] = 300;
  probes_[2].throttled_us = 650'000;
  run(6);
  expect_only(2, Cause::kThrottled);
  EXPECT_THAT(verdict(2).seen, HasSubstr("held it back 65% of the time"));
}

TEST_F(MonitorCausesTest, WithoutEvidenceOfItsHostTheCauseIsLongerComputing) {
  probes_.assign(4, {});
  own_ms_[2] = 300;
  run(6);
  expect_only(2, Cause::kCompute);
}

TEST_F(MonitorCausesTest, AWorkerWithLessCpuTimeIsNoStragglerUnlessItLasts) {
  run(8);
  waits_for_a_cpu(2, 160);
  run(6);
  expect_nobody();
  run(20);
  expect_only(2, Cause::kContended);
  EXPECT_EQ(verdict(2).kind, VerdictKind::kPersistent);
}

TEST_F(MonitorCausesTest, TheSchedulersChoiceMovesFromOneToAnotherAndNobodyIsNamed) {
  for (int turn = 0; turn < 12; ++turn) {
    const auto who = static_cast<std::size_t>(turn) % 4;
    waits_for_a_cpu(who, 180);
    for (int i = 0; i < 7; ++i) {
      run(1);
      expect_nobody();
    }
    own_ms_[who] = 100;
    probes_[who] = {.looked_us = 1'000'000};
  }
}

TEST_F(MonitorCausesTest, AWorkerThatIsSlowedIsNamedAtOnceWhileAllWaitForCpus) {
  for (wire::HostProbe& probe : probes_) probe.queued_us = probe.ran_us = 300'000;
  run(8);
  own_ms_[2] = 300;
  run(6);
  expect_only(2, Cause::kCompute);
}

TEST_F(MonitorCausesTest, AWorkerOnABusyHostOfItsOwnIsNamedAtOnce) {
  set_hosts({"a", "b", "c", "d"});
  run(8);
  waits_for_a_cpu(2, 160);
  run(6);
  expect_only(2, Cause::kContended);
}

TEST_F(MonitorCausesTest, AllWorkersOfABusyHostAreNamedAtOnce) {
  set_hosts({"a", "a", "b", "b"});
  run(8);
  waits_for_a_cpu(0, 160);
  waits_for_a_cpu(1, 160);
  run(6);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(is_slow(i), i < 2) << "w" << i;
  }
}

TEST_F(MonitorCausesTest, WhereCpusAreStolenADifferenceMustLast) {
  run(8);
  for (wire::HostProbe& probe : probes_) probe.stolen_us = 300'000;
  own_ms_ = {110, 110, 180, 110};
  run(6);
  expect_nobody();
}

TEST_F(MonitorCausesTest, ALinkThatEverybodyWaitsForIsNamedAndNobodyElse) {
  run(8);
  // Each message of w1 takes 10 ms longer, and a step has six rounds of messages.
  hop_us_ = {10'100, 10'100, 100, 100};
  collective_ms_ = 62;
  run(6);
  expect_only(1, Cause::kNetwork);
  EXPECT_NEAR(verdict(1).severity, 162 / (162 - 62 * 0.99), 0.01);
  EXPECT_THAT(verdict(1).seen,
              HasSubstr("to a neighbour and back on both its links takes 10.1 ms, 0.1 ms among"));
  EXPECT_EQ(verdict(1).kind, VerdictKind::kTransient);
  run(20);
  EXPECT_EQ(verdict(1).kind, VerdictKind::kPersistent);
  hop_us_.assign(4, 100);
  collective_ms_ = 2;
  run(8);
  EXPECT_EQ(verdict(1).kind, VerdictKind::kNone);
}

TEST_F(MonitorCausesTest, ALinkThatWasSlowOnceIsNotBlamedForTheNextWait) {
  hop_us_ = {10'100, 10'100, 100, 100};
  collective_ms_ = 62;
  run(6);
  expect_only(1, Cause::kNetwork);
  hops_ = 0;  // nobody waits, so nothing is measured
  collective_ms_ = 2;
  run(5);
  EXPECT_EQ(verdict(1).kind, VerdictKind::kNone);
  collective_ms_ = 300;
  run(1);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(verdict(i).kind, VerdictKind::kNone);
}

TEST_F(MonitorCausesTest, OneSlowLinkNamesItsTwoEnds) {
  hop_us_[3] = 20'000;
  collective_ms_ = 100;
  run(8);
  EXPECT_EQ(verdict(3).cause, Cause::kNetwork);
  EXPECT_THAT(verdict(3).seen, HasSubstr("between it and w0"));
  EXPECT_THAT(verdict(0).seen, HasSubstr("between it and w3"));
  EXPECT_EQ(verdict(1).kind, VerdictKind::kNone);
  EXPECT_EQ(verdict(2).kind, VerdictKind::kNone);
}

TEST_F(MonitorCausesTest, ASlowLinkThatCostsLittleIsNotWorthAVerdict) {
  hop_us_ = {10'100, 10'100, 100, 100};
  collective_ms_ = 10;
  run(8);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(verdict(i).kind, VerdictKind::kNone);
}

TEST_F(MonitorCausesTest, ASlowWorkerBehindASlowLinkIsNamedForItsComputing) {
  own_ms_[1] = 300;
  hop_us_ = {30'000, 30'000, 100, 100};
  collective_ms_ = 180;
  run(8);
  expect_only(1, Cause::kCompute);
}

TEST_F(MonitorCausesTest, AroundServersASlowLinkIsItsWorkersOwn) {
  std::vector<Monitor::MemberInfo> members;
  for (std::uint32_t i = 0; i < 4; ++i) members.push_back({{w(i), Attempt{1}}, "a"});
  monitor_.set_members(members);
  hop_us_ = {100, 30'000, 100, 100};
  collective_ms_ = 60;
  run(8);
  expect_only(1, Cause::kNetwork);
  EXPECT_THAT(verdict(1).seen, HasSubstr("from it to a server and back takes 30 ms, 0.1 ms"));
}

TEST_F(MonitorCausesTest, AnotherRingForgetsTheHops) {
  hop_us_ = {10'100, 10'100, 100, 100};
  collective_ms_ = 62;
  run(8);
  EXPECT_EQ(verdict(1).cause, Cause::kNetwork);
  set_members({"", "", "", ""});
  seen_ = monitor_.view(now_);
  EXPECT_EQ(verdict(1).kind, VerdictKind::kNone);
}

TEST_F(MonitorCausesTest, ASlowerDeviceIsTheCauseWhereItIsSlowFromTheBeginning) {
  set_members({"new", "old", "new", "new"});
  own_ms_[1] = 250;
  run(30);
  expect_only(1, Cause::kDevice);
  EXPECT_EQ(verdict(1).kind, VerdictKind::kDeterministic);
  EXPECT_THAT(verdict(1).seen, HasSubstr("its device is a 'old'"));
}

TEST_F(MonitorCausesTest, AWorkerSlowerThanOthersWithTheSameDeviceIsNotExplainedByItsDevice) {
  set_members({"new", "old", "old", "old"});
  own_ms_ = {100, 300, 100, 100};
  run(8);
  expect_only(1, Cause::kCompute);
}

TEST_F(MonitorCausesTest, ADeviceThatBecameSlowIsNotASlowerDevice) {
  set_members({"new", "old", "new", "new"});
  run(30);
  own_ms_[1] = 250;
  run(8);
  expect_only(1, Cause::kCompute);
}

}  // namespace
}  // namespace antdt::ctl
