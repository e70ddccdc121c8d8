#include "ctl/job/metrics/job_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/metrics/exposition.h"
#include "tests/ctl/job/metrics/example_report.h"

namespace antdt::ctl {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string text_of(const JobReport& report) {
  PastCounts past;
  past.see(report);
  DaemonCounts daemon{"1.2.3", {{"checkpoint", 4}}, commit_times()};
  daemon.journal_commits.observe(0.002);
  return metrics::to_text(job_metrics(report, past, daemon));
}

TEST(JobMetricsTest, TheStateIsOneOfAllThatThereAre) {
  const std::string text = text_of(example_report());
  EXPECT_THAT(text, HasSubstr("antdt_job_state{antdt_job=\"ctr-01\",state=\"training\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("antdt_job_state{antdt_job=\"ctr-01\",state=\"starting\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("antdt_job_state{antdt_job=\"ctr-01\",state=\"stopped\"} 0\n"));
}

TEST(JobMetricsTest, ProgressAndRecordsAreTold) {
  const std::string text = text_of(example_report());
  EXPECT_THAT(text, HasSubstr("antdt_job_samples_done{antdt_job=\"ctr-01\"} 800\n"));
  EXPECT_THAT(text, HasSubstr("antdt_job_samples_wanted{antdt_job=\"ctr-01\"} 1600\n"));
  EXPECT_THAT(text, HasSubstr("antdt_job_records{antdt_job=\"ctr-01\",outcome=\"once\"} 800\n"));
  EXPECT_THAT(text, HasSubstr("antdt_job_delivery_broken{antdt_job=\"ctr-01\"} 0\n"));
  JobReport lost = example_report();
  lost.totals.lost = 1;
  EXPECT_THAT(text_of(lost), HasSubstr("antdt_job_delivery_broken{antdt_job=\"ctr-01\"} 1\n"));
}

TEST(JobMetricsTest, AWorkerHasItsSpeedShareVerdictAndTimes) {
  const std::string text = text_of(example_report());
  const std::string w1 = "antdt_job=\"ctr-01\",worker=\"w1\",host=\"b\"";
  EXPECT_THAT(text, HasSubstr("antdt_worker_samples_per_second{" + w1 + "} 50\n"));
  EXPECT_THAT(text, HasSubstr("antdt_worker_batch_samples{" + w1 + "} 16\n"));
  EXPECT_THAT(text, HasSubstr("antdt_worker_straggler{" + w1 + "} 1\n"));
  EXPECT_THAT(text, HasSubstr("antdt_worker_slowdown_ratio{" + w1 + "} 3\n"));
  EXPECT_THAT(text, HasSubstr("antdt_worker_verdict{" + w1 +
                              ",verdict=\"transient\",cause=\"throttled\"} 1\n"));
  EXPECT_THAT(
      text, HasSubstr("antdt_worker_time_seconds_total{" + w1 + ",part=\"collective_wait\"} 1\n"));
  EXPECT_THAT(
      text, HasSubstr("antdt_worker_info{" + w1 + ",rank=\"1\",state=\"joined\",device=\"\"} 1\n"));
}

TEST(JobMetricsTest, AWorkerThatNobodyHasMeasuredHasNoSpeedAndNoVerdict) {
  const std::string text = text_of(example_report());
  const std::string w0 = "antdt_job=\"ctr-01\",worker=\"w0\",host=\"a\"";
  EXPECT_THAT(text, HasSubstr("antdt_worker_joined{" + w0));
  EXPECT_THAT(text, Not(HasSubstr("antdt_worker_samples_per_second{" + w0)));
  EXPECT_THAT(text, Not(HasSubstr("antdt_worker_straggler{" + w0)));
}

TEST(JobMetricsTest, AWorkerThatWasRemovedIsNotThere) {
  JobReport report = example_report();
  report.workers[1].state = ProcessState::kRemoved;
  EXPECT_THAT(text_of(report), Not(HasSubstr("worker=\"w1\"")));
}

TEST(JobMetricsTest, ActionsFailuresEventsAndHostsAreTold) {
  const std::string text = text_of(example_report());
  EXPECT_THAT(text, HasSubstr("antdt_job_actions_total{antdt_job=\"ctr-01\",kind=\"adjust-batch\","
                              "outcome=\"applied\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("antdt_job_failures_total{antdt_job=\"ctr-01\",class=\"oom\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("antdt_job_failures_total{antdt_job=\"ctr-01\",class=\"hang\"} 0\n"))
      << "the first failure of a class is an increase";
  EXPECT_THAT(text,
              HasSubstr("antdt_job_events_total{antdt_job=\"ctr-01\",kind=\"checkpoint\"} 4"));
  EXPECT_THAT(text, HasSubstr("kind=\"checkpoint-unknown\"} 0")) << "the alert's rule needs it";
  EXPECT_THAT(text, HasSubstr("antdt_job_host_up{antdt_job=\"ctr-01\",host=\"a\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("antdt_job_failure_budget_left{antdt_job=\"ctr-01\",class=\"oom\"} 1"));
}

TEST(JobMetricsTest, ServersAreThereIfTheJobHasSome) {
  EXPECT_THAT(text_of(example_report()), Not(HasSubstr("antdt_server_")));
  JobReport report = example_report();
  ServerReport server{WorkerId{'s', 0}, "a", 7, Attempt{1}, ProcessState::kJoined, {}};
  server.said.service_us_p99 = 250;
  server.said.pushes_late = 5;
  report.servers = {server};
  const std::string text = text_of(report);
  const std::string s0 = "antdt_job=\"ctr-01\",server=\"s0\",host=\"a\"";
  EXPECT_THAT(text, HasSubstr("antdt_server_p99_service_seconds{" + s0 + "} 0.00025\n"));
  EXPECT_THAT(text, HasSubstr("antdt_server_pushes_total{" + s0 + ",outcome=\"late\"} 5\n"));
}

TEST(JobMetricsTest, TheJournalsCommitsAreAHistogram) {
  const std::string text = text_of(example_report());
  EXPECT_THAT(
      text, HasSubstr("antdt_journal_commit_seconds_bucket{antdt_job=\"ctr-01\",le=\"0.001\"} 0"));
  EXPECT_THAT(
      text, HasSubstr("antdt_journal_commit_seconds_bucket{antdt_job=\"ctr-01\",le=\"0.0025\"} 1"));
}

// Prometheus refuses an answer that has the same series twice.
TEST(JobMetricsTest, NoSeriesIsThereTwice) {
  JobReport report = example_report();
  report.servers = {ServerReport{WorkerId{'s', 0}, "a", 7, Attempt{1}, ProcessState::kJoined, {}}};
  PastCounts past;
  past.see(report);
  const metrics::Families families = job_metrics(report, past, {"1", {}, commit_times()});
  std::set<std::string> names;
  for (const metrics::Family& family : families.all()) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_EQ(family.name.ends_with("_total"), family.type == metrics::Type::kCounter)
        << family.name;
    std::set<metrics::Labels> labels;
    for (const auto& sample : family.samples) {
      EXPECT_TRUE(labels.insert(sample.labels).second) << family.name;
    }
  }
}

}  // namespace
}  // namespace antdt::ctl
