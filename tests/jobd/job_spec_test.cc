#include "jobd/programs/job_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "core/os/fs.h"
#include "tests/launcher/job_text.h"

namespace antdt::jobd {
namespace {

constexpr std::uint64_t kRecords = 1000;

ctl::JobSpec spec_of(const std::string& job_toml) {
  const auto config = launcher::load_text(job_toml, "job.toml");
  EXPECT_TRUE(config) << config.error().message;
  return job_spec(*config, {kRecords, 0, "", ""}).value();
}

TEST(JobSpecTest, AnAllReduceJobHasNoServers) {
  const ctl::JobSpec spec = spec_of(launcher::kJob);
  EXPECT_EQ(spec.servers, 0U);
  EXPECT_EQ(spec.sync, SyncStrategy::kAllReduce);
  EXPECT_FALSE(spec.external);
}

TEST(JobSpecTest, SaysHowManyServersThereAreAndHowTheyTrain) {
  const ctl::JobSpec spec = spec_of(launcher::kServersJob);
  EXPECT_EQ(spec.servers, 2U);
  EXPECT_EQ(spec.sync, SyncStrategy::kPsBsp);
  EXPECT_EQ(spec.restart, ctl::Restart::kMember);
}

TEST(JobSpecTest, SaysWhatIsWrittenOfDevices) {
  const auto config = launcher::load_text(
      launcher::kJob + "[[device]]\nworkers = [\"w1\"]\nhost = \"b\"\nclass = \"big\"\n" +
          "max_micro_batch = 32\n",
      "job.toml");
  ASSERT_TRUE(config) << config.error().message;
  const auto machine = machine_config(*config, {kRecords, 0, "", ""});
  ASSERT_TRUE(machine);
  ASSERT_EQ(machine->devices.size(), 1U);
  const ctl::DeviceRule& rule = machine->devices[0];
  EXPECT_EQ(rule.device, (ctl::Device{"big", 32}));
  EXPECT_TRUE(rule.is_for({'w', 1}, "b"));
  EXPECT_FALSE(rule.is_for({'w', 1}, "a"));
  EXPECT_FALSE(rule.is_for({'w', 0}, "b"));
}

launcher::JobConfig config_of(const std::string& job_toml) {
  const auto config = launcher::load_text(job_toml, "job.toml");
  EXPECT_TRUE(config) << config.error().message;
  return *config;
}

TEST(JobSpecTest, AJobWithoutWorkersOfItsOwnWaitsForClients) {
  launcher::JobConfig config = config_of(launcher::kJob);
  config.roles.worker.count = 0;
  EXPECT_TRUE(job_spec(config, {kRecords, 0, "", ""})->external);
  config.roles.worker.protocol = "exec";
  EXPECT_FALSE(job_spec(config, {kRecords, 0, "", ""})->external) << "it has no clients either";
}

TEST(JobSpecTest, OnlyARangeOfWorkersBoundsTheirNumber) {
  launcher::JobConfig config = config_of(launcher::kJob);
  EXPECT_EQ(job_spec(config, {kRecords, 0, "", ""})->most_workers, 0U);
  config.roles.worker.min = 2;
  config.roles.worker.max = 6;
  const auto spec = job_spec(config, {kRecords, 0, "", ""});
  EXPECT_EQ(spec->fewest_workers, 2U);
  EXPECT_EQ(spec->most_workers, 6U);
}

TEST(JobSpecTest, ProtocolAndRestartAreThoseOfTheRole) {
  launcher::JobConfig config = config_of(launcher::kJob);
  const std::vector<std::pair<std::string, ctl::Protocol>> protocols = {
      {"antdt", ctl::Protocol::kAntdt},
      {"torchrun", ctl::Protocol::kTorchrun},
      {"exec", ctl::Protocol::kExec}};
  for (const auto& [name, protocol] : protocols) {
    config.roles.worker.protocol = name;
    EXPECT_EQ(job_spec(config, {kRecords, 0, "", ""})->protocol, protocol) << name;
  }
  const std::vector<std::pair<std::string, ctl::Restart>> restarts = {
      {"never", ctl::Restart::kNever},
      {"member", ctl::Restart::kMember},
      {"gang", ctl::Restart::kGang}};
  for (const auto& [name, restart] : restarts) {
    config.roles.worker.restart = name;
    EXPECT_EQ(job_spec(config, {kRecords, 0, "", ""})->restart, restart) << name;
  }
}

TEST(JobSpecTest, TheCostsOfAFailureAreReadFromTheJob) {
  const ctl::JobSpec spec =
      spec_of(launcher::kJob +
              "[failure]\nbudgets = { signal = 7 }\n"
              "budget_refill = \"3m\"\nstop_grace = \"4s\"\nhang_after = \"7m\"\n"
              "[checkpoint]\nevery = \"90s\"\n");
  EXPECT_EQ(spec.budgets.at("signal"), 7U);
  EXPECT_EQ(spec.budget_refill, std::chrono::minutes(3));
  EXPECT_EQ(spec.stop_grace, std::chrono::seconds(4));
  EXPECT_EQ(spec.hang_after, std::chrono::minutes(7));
  EXPECT_EQ(spec.checkpoint_every, std::chrono::seconds(90));
}

TEST(JobSpecTest, WithoutRecordsThereIsNothingToTrain) {
  launcher::JobConfig config = config_of(launcher::kJob);
  const auto spec = job_spec(config, {0, 0, "", ""});
  ASSERT_FALSE(spec);
  EXPECT_THAT(spec.error().message, testing::HasSubstr("[data] paths"));
  config.roles.worker.protocol = "exec";
  EXPECT_TRUE(job_spec(config, {0, 0, "", ""})) << "its data is its own business";
}

TEST(JobSpecTest, WordsThatNoReleaseKnowsAreErrorsAndNotDefaults) {
  launcher::JobConfig config = config_of(launcher::kJob);
  config.control.mode = "acts";
  EXPECT_FALSE(controller_config(config));
  EXPECT_FALSE(machine_config(config, {kRecords, 0, "", ""}));
  config = config_of(launcher::kJob);
  config.batch.adjust = "some";
  EXPECT_FALSE(controller_config(config));
}

TEST(JobSpecTest, TheLedgerDealsWhatWasFoundAndNotWhatWasWritten) {
  launcher::JobConfig config = config_of(launcher::kJob);
  config.data.shuffle = "shards";
  config.data.shard_records = 64;
  config.job.seed = 9;
  const DataFound found{kRecords + 1, 70, "f", ""};
  const auto machine = machine_config(config, found);
  ASSERT_TRUE(machine) << machine.error().message;
  for (const shard_server::DataSet* set : {&machine->ledger.train, &machine->ledger.eval}) {
    EXPECT_EQ(set->shuffle, shard_server::Shuffle::kShards);
    EXPECT_EQ(set->shard_records, 64U);
    EXPECT_EQ(set->seed, 9U);
  }
  EXPECT_EQ(machine->ledger.train.records, kRecords + 1);
  EXPECT_EQ(machine->ledger.eval.records, 70U);
  EXPECT_FALSE(machine->ledger.drops_late);
  config.data.shard_records = 0;
  EXPECT_EQ(train_set(config, found).shard_records, 1U) << "a shard has a record at least";
}

// Makes the files that the launcher leaves in the run directory.
class DataFoundTest : public testing::Test {
 protected:
  Result<DataFound> found_in(const std::string& text) {
    EXPECT_TRUE(write_file_atomic(run_ / "data.json", text));
    return load_data_found(run_.path());
  }
  TempDir run_;
};

TEST_F(DataFoundTest, SaysHowManyRecordsThereAreAndWhichData) {
  const auto found =
      found_in(R"({"train_records":1000,"eval_records":20,"fingerprint":"ab","later":1})");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->train_records, 1000U);
  EXPECT_EQ(found->eval_records, 20U);
  EXPECT_EQ(found->fingerprint, "ab");
}

TEST_F(DataFoundTest, AFileThatTheLauncherDidNotWriteIsAnErrorThatNamesTheRun) {
  for (const char* text : {"", "[]", "{}", R"({"train_records":-1})", R"({"train_records":"1"})",
                           R"({"train_records":1)"}) {
    const auto found = found_in(text);
    ASSERT_FALSE(found) << text;
    EXPECT_EQ(found.error().kind, ErrorKind::kCorrupt) << text;
    EXPECT_THAT(found.error().message, testing::HasSubstr(run_.path())) << text;
  }
}

TEST_F(DataFoundTest, WhereThereIsNoneIsAnError) { EXPECT_FALSE(load_data_found(run_.path())); }

}  // namespace
}  // namespace antdt::jobd
