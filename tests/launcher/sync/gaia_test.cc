// job.toml of a job whose domains send one another significant updates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "launcher/config/job_config.h"
#include "tests/launcher/job_text.h"

namespace antdt::launcher {
namespace {

using testing::HasSubstr;

const std::string kTwoDomains =
    "[[domain]]\nname = \"east\"\nworkers = [\"w0\", \"w1\"]\n"
    "[[domain]]\nname = \"west\"\nworkers = [\"w2\", \"w3\"]\n";
const std::string kGaiaTrainer = "[trainer]\nsync = \"gaia\"\noptimizer = \"sgd\"\n";
const std::string kGaiaJob = kJob + kGaiaTrainer + kTwoDomains;

std::string gaia_problems(const std::string& setting) { return problems_of(kGaiaJob, {setting}); }

TEST(Gaia, IsAValueOfTrainerSyncForTwoOrMoreDomains) {
  EXPECT_EQ(gaia_problems("trainer.momentum=0.9"), "");
  EXPECT_EQ(gaia_problems("trainer.collective=tcp"), "");
  EXPECT_EQ(gaia_problems("trainer.device=auto"), "");
  EXPECT_THAT(problems_of(kJob + kGaiaTrainer, {}),
              HasSubstr("this job has no [[domain]]: write a [[domain]] for each place"));
  const std::string one = kTwoDomains.substr(0, kTwoDomains.rfind("[[domain]]"));
  EXPECT_THAT(problems_of(kJob + kGaiaTrainer + one, {}), HasSubstr("has one [[domain]]"));
}

TEST(Gaia, HasAThresholdAndAnIntervalOfWholeExchanges) {
  const auto config = load_text(kGaiaJob, "job.toml",
                                {"trainer.gaia.threshold=0.05", "trainer.gaia.whole_every=7"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->trainer.gaia.threshold, 0.05);
  EXPECT_EQ(config->trainer.gaia.whole_every, 7U);
  EXPECT_THAT(gaia_problems("trainer.gaia.whole_every=0"), HasSubstr("trainer.gaia.whole_every"));
  EXPECT_THAT(gaia_problems("trainer.gaia.threshold=-1"), HasSubstr("trainer.gaia.threshold"));
  EXPECT_THAT(problems_of(kJob, {"trainer.gaia.whole_every=7"}),
              HasSubstr("is for trainer.sync = \"gaia\", not \"allreduce\": remove it"));
}

// A job whose threshold follows what replicas lose in other domains.
std::string scout_problems(std::vector<std::string> settings) {
  settings.insert(settings.begin(), "control.solution=skew-scout");
  return problems_of(kGaiaJob, settings);
}

TEST(Gaia, HasAThresholdThatSkewScoutMayChange) {
  EXPECT_EQ(scout_problems({}), "");
  EXPECT_EQ(scout_problems({"control.skew_scout.every=10", "control.skew_scout.weight_bytes=0.5"}),
            "");
  EXPECT_THAT(problems_of(kJob, {"control.solution=skew-scout"}),
              HasSubstr("this job has \"allreduce\": write sync = \"gaia\", or another solution"));
  EXPECT_THAT(gaia_problems("control.skew_scout.every=10"),
              HasSubstr("is for control.solution = \"skew-scout\", not \"nd\": remove it"));
  EXPECT_THAT(scout_problems({"trainer.gaia.threshold=0"}),
              HasSubstr("and 0 stays 0: write more, such as 0.01"));
  EXPECT_THAT(scout_problems({"trainer.gaia.whole_every=70"}),
              HasSubstr("70 is not a multiple of control.skew_scout.every = 50"));
  EXPECT_THAT(scout_problems({"trainer.gaia.whole_every=70"}), HasSubstr("write 50"));
  EXPECT_THAT(scout_problems({"control.skew_scout.every=0"}),
              HasSubstr("control.skew_scout.every"));
  EXPECT_THAT(problems_of(replaced(kGaiaJob, "optimizer = \"sgd\"", "model = \"tally\""),
                          {"control.solution=skew-scout", "data.format=index", "data.records=100",
                           "data.paths=[]"}),
              HasSubstr("'tally' only counts: write another solution"));
}

TEST(Gaia, RefusesOptimizersWhoseUpdatesDoNotAddUp) {
  EXPECT_THAT(gaia_problems("trainer.optimizer=adam"),
              HasSubstr("each domain would take a whole step of Adam, and the model their sum: use "
                        "\"sgd\", or trainer.sync = \"ds-sync\""));
  EXPECT_THAT(gaia_problems("trainer.optimizer=adagrad"), HasSubstr("a whole step of Adagrad"));
  EXPECT_THAT(gaia_problems("trainer.weight_decay=0.1"),
              HasSubstr("each domain would take the whole decay"));
  EXPECT_EQ(problems_of(replaced(kGaiaJob, "optimizer = \"sgd\"", "model = \"tally\""),
                        {"data.format=index", "data.records=100", "data.paths=[]"}),
            "");
}

TEST(Gaia, RefusesWhatItCannotDoAndSaysWhatToUse) {
  EXPECT_THAT(gaia_problems("roles.server.count=2"),
              HasSubstr("nothing for servers to do under trainer.sync = \"gaia\""));
  EXPECT_THAT(gaia_problems("control.share_steps=true"),
              HasSubstr("under \"gaia\" a domain sums its own gradients; remove it"));
  EXPECT_THAT(gaia_problems("trainer.device=cuda"),
              HasSubstr("write device = \"cpu\", or use \"allreduce\""));
  EXPECT_THAT(gaia_problems("trainer.precision=bf16"), HasSubstr("precision \"fp32\""));
  EXPECT_THAT(gaia_problems("trainer.collective=nccl"), HasSubstr("write \"auto\""));
  EXPECT_THAT(gaia_problems("trainer.embedding_gradients=sparse"),
              HasSubstr("domains look at the whole table for significant updates: remove it"));
  EXPECT_THAT(gaia_problems("trainer.backup_workers=1"), HasSubstr("not \"gaia\": remove it"));
  EXPECT_THAT(problems_of(replaced(kGaiaJob, "count = 4", "count = 4\ncommand = [\"./mine\"]")),
              HasSubstr("'gaia' sends updates of the parameters of antdt-trainer"));
}

TEST(Gaia, TheExampleIsAJob) {
  const auto text = read_file(ANTDT_SOURCE_DIR "/examples/gaia/job.toml");
  ASSERT_TRUE(text) << text.error().message;
  const std::string some_file = "[\"" ANTDT_SOURCE_DIR "/README.md\"]";  // its data are made
  const auto config =
      load_text(*text, "job.toml", {"data.paths=" + some_file, "data.eval_paths=" + some_file});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->trainer.sync, "gaia");
  EXPECT_EQ(config->domain.size(), 2U);
}

}  // namespace
}  // namespace antdt::launcher
