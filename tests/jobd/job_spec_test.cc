#include "cmd/antdt-jobd/job_spec.h"

#include <gtest/gtest.h>

#include "tests/launcher/job_text.h"

namespace antdt::jobd {
namespace {

constexpr std::uint64_t kRecords = 1000;

ctl::JobSpec spec_of(const std::string& job_toml) {
  const auto config = launcher::load_text(job_toml, "job.toml");
  EXPECT_TRUE(config) << config.error().message;
  return job_spec(*config, {kRecords, 0, ""}).value();
}

TEST(JobSpecTest, AnAllReduceJobHasNoServers) {
  const ctl::JobSpec spec = spec_of(launcher::kJob);
  EXPECT_EQ(spec.servers, 0U);
  EXPECT_EQ(spec.sync, "allreduce");
  EXPECT_FALSE(spec.external);
}

TEST(JobSpecTest, SaysHowManyServersThereAreAndHowTheyTrain) {
  const ctl::JobSpec spec = spec_of(launcher::kServersJob);
  EXPECT_EQ(spec.servers, 2U);
  EXPECT_EQ(spec.sync, "ps-bsp");
  EXPECT_EQ(spec.restart, ctl::Restart::kMember);
}

}  // namespace
}  // namespace antdt::jobd
