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

TEST(JobSpecTest, SaysWhatIsWrittenOfDevices) {
  const auto config = launcher::load_text(
      launcher::kJob + "[[device]]\nworkers = [\"w1\"]\nhost = \"b\"\nclass = \"big\"\n" +
          "max_micro_batch = 32\n",
      "job.toml");
  ASSERT_TRUE(config) << config.error().message;
  const auto machine = machine_config(*config, {kRecords, 0, ""});
  ASSERT_TRUE(machine);
  ASSERT_EQ(machine->devices.size(), 1U);
  const ctl::DeviceRule& rule = machine->devices[0];
  EXPECT_EQ(rule.device, (ctl::Device{"big", 32}));
  EXPECT_TRUE(rule.is_for({'w', 1}, "b"));
  EXPECT_FALSE(rule.is_for({'w', 1}, "a"));
  EXPECT_FALSE(rule.is_for({'w', 0}, "b"));
}

}  // namespace
}  // namespace antdt::jobd
