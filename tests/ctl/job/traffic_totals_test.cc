// What the workers of a job exchanged, over all of their attempts.
#include "ctl/job/observers/traffic_totals.h"

#include <gtest/gtest.h>

namespace antdt::ctl {
namespace {

Member attempt_of(std::uint32_t worker, std::uint32_t attempt = 1) {
  return {{'w', worker}, Attempt{attempt}};
}

// All of it gradients, from host a in domain x.
wire::TrafficSums exchanged(std::uint64_t bytes, const std::string& to,
                            const std::string& domain = "") {
  wire::TrafficSums traffic;
  traffic.gradients = bytes;
  traffic.hosts = {{.from = "a",
                    .to = to,
                    .sent_bytes = bytes,
                    .received_bytes = 2 * bytes,
                    .waited_us = bytes * 1000,
                    .from_domain = domain.empty() ? "" : "x",
                    .to_domain = domain}};
  return traffic;
}

TEST(TrafficTotals, NothingIsReportedBeforeSomethingWasExchanged) {
  TrafficTotals totals;
  EXPECT_FALSE(totals.report());
  totals.told(attempt_of(0), {});
  EXPECT_FALSE(totals.report());
}

TEST(TrafficTotals, SumsSoFarAreCountedOnceHoweverOftenTheyAreTold) {
  TrafficTotals totals;
  totals.told(attempt_of(0), exchanged(50, "b"));
  totals.told(attempt_of(0), exchanged(50, "b"));
  totals.told(attempt_of(0), {});
  totals.told(attempt_of(0), exchanged(70, "b"));
  totals.told(attempt_of(0), exchanged(60, "b"));  // overtaken
  totals.told(attempt_of(1), exchanged(5, "b"));
  const auto report = totals.report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->gradients_bytes, 75U);
  ASSERT_EQ(report->hosts.size(), 1U);
  EXPECT_EQ(report->hosts[0].sent_bytes, 75U);
  EXPECT_EQ(report->hosts[0].received_bytes, 150U);
  EXPECT_DOUBLE_EQ(report->hosts[0].waited_seconds, 0.075);
  EXPECT_TRUE(report->domains.empty());
}

TEST(TrafficTotals, HostsMayBeToldInAnotherOrder) {
  TrafficTotals totals;
  wire::TrafficSums two = exchanged(70, "b");
  two.hosts.push_back(exchanged(10, "c").hosts[0]);
  totals.told(attempt_of(0), two);
  wire::TrafficSums three = exchanged(20, "d");
  three.gradients = 120;
  three.hosts.push_back(exchanged(80, "b").hosts[0]);
  three.hosts.push_back(exchanged(20, "c").hosts[0]);
  totals.told(attempt_of(0), three);
  const auto report = totals.report();
  ASSERT_TRUE(report);
  ASSERT_EQ(report->hosts.size(), 3U);
  EXPECT_EQ(report->hosts[0].sent_bytes, 80U);
  EXPECT_EQ(report->hosts[1].sent_bytes, 20U);
  EXPECT_EQ(report->hosts[2].sent_bytes, 20U);
}

TEST(TrafficTotals, ANewAttemptAddsToWhatTheEarlierOneExchanged) {
  TrafficTotals totals;
  totals.told(attempt_of(0, 1), exchanged(70, "b"));
  totals.told(attempt_of(0, 2), exchanged(10, "c"));
  totals.told(attempt_of(0, 1), exchanged(90, "b"));  // late, of a process that was given up
  totals.told(attempt_of(0, 2), exchanged(100, "c"));
  const auto report = totals.report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->gradients_bytes, 170U);
  ASSERT_EQ(report->hosts.size(), 2U);
  EXPECT_EQ(report->hosts[0].sent_bytes, 70U);
  EXPECT_EQ(report->hosts[1].sent_bytes, 100U);
}

TEST(TrafficTotals, PairsOfDomainsHaveAllOfTheirHosts) {
  TrafficTotals totals;
  totals.told(attempt_of(0), exchanged(1, "b", "x"));
  totals.told(attempt_of(1), exchanged(2, "c", "y"));
  totals.told(attempt_of(2), exchanged(4, "d", "y"));
  const auto report = totals.report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->hosts.size(), 3U);
  ASSERT_EQ(report->domains.size(), 2U);
  EXPECT_EQ(report->domains[0].to_domain, "x");
  EXPECT_EQ(report->domains[1].from_domain, "x");
  EXPECT_EQ(report->domains[1].from, "");
  EXPECT_EQ(report->domains[1].sent_bytes, 6U);
}

TEST(TrafficTotals, OfManyPairsOfHostsThoseWithTheMostBytesAreReported) {
  TrafficTotals totals;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    totals.told(attempt_of(i), exchanged(1 + i, "host" + std::to_string(i), "y"));
  }
  const auto report = totals.report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->hosts.size(), TrafficTotals::kMostPairs);
  EXPECT_EQ(report->hosts_left_out, 1000 - TrafficTotals::kMostPairs);
  for (const report::TrafficBetween& pair : report->hosts) {
    EXPECT_GT(pair.sent_bytes, 1000 - TrafficTotals::kMostPairs);
  }
  ASSERT_EQ(report->domains.size(), 1U);
  EXPECT_EQ(report->domains[0].sent_bytes, 500'500U) << "of all";
}

}  // namespace
}  // namespace antdt::ctl
