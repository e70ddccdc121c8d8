#include "antdtd/host/agent_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/metrics/exposition.h"

namespace antdt::antdtd {
namespace {

using testing::HasSubstr;

TEST(AgentMetricsTest, JobsProcessesAndWhatIsFreeAreTold) {
  AgentFacts facts{"1.2.3", "node1", {8, 1024, 2}, {6.5, 512, 1}, {}, {}};
  facts.jobs = {{"ctr-01", "alice", 3, true}, {"ctr-02", "bob", 0, false}};
  const std::string text = metrics::to_text(agent_metrics(facts));
  EXPECT_THAT(text, HasSubstr("antdt_build_info{host=\"node1\",version=\"1.2.3\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("antdt_agent_cpus_free{host=\"node1\"} 6.5\n"));
  EXPECT_THAT(text, HasSubstr("antdt_agent_memory_bytes{host=\"node1\"} 1024\n"));
  EXPECT_THAT(text, HasSubstr("antdt_agent_jobs{host=\"node1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("antdt_agent_job_processes{host=\"node1\",antdt_job=\"ctr-01\","
                              "user=\"alice\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("antdt_agent_job_attached{host=\"node1\",antdt_job=\"ctr-02\","
                              "user=\"bob\"} 0\n"));
}

ExitStatus ended(int code, int signal = 0, const std::string& oom = "") {
  ExitStatus status;
  status.code = code;
  status.signal = signal;
  status.oom = oom;
  return status;
}

TEST(ProcessCountsTest, EndsAreCountedByHow) {
  ProcessCounts counts;
  EXPECT_EQ(counts.ends().at("signal"), 0U) << "the first one is an increase";
  counts.started();
  counts.ended(ended(0));
  counts.ended(ended(3));
  counts.ended(ended(4));
  counts.ended(ended(-1, 15));
  counts.ended(ended(-1, 9, "the kernel killed it"));
  EXPECT_EQ(counts.starts(), 1U);
  EXPECT_EQ(counts.ends().at("done"), 1U);
  EXPECT_EQ(counts.ends().at("error"), 2U);
  EXPECT_EQ(counts.ends().at("signal"), 1U);
  EXPECT_EQ(counts.ends().at("out-of-memory"), 1U);
}

}  // namespace
}  // namespace antdt::antdtd
