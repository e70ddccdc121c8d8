// job.toml of a job whose workers average their parameters in groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "launcher/config/job_config.h"
#include "tests/launcher/job_text.h"

namespace antdt::launcher {
namespace {

using testing::HasSubstr;

const std::string kDsSyncJob = kJob + "[trainer]\nsync = \"ds-sync\"\n";

std::string problems_with(const std::string& setting) { return problems_of(kDsSyncJob, {setting}); }

TEST(DsSync, IsAValueOfTrainerSyncForAnyNumberOfWorkers) {
  for (const char* workers : {"1", "2", "9", "512"}) {
    EXPECT_EQ(problems_with(std::string("roles.worker.count=") + workers), "");
  }
  EXPECT_EQ(problems_with("trainer.collective=tcp"), "");
  EXPECT_EQ(problems_with("trainer.device=auto"), "");
}

TEST(DsSync, RefusesWhatItCannotDoAndSaysWhatToUse) {
  EXPECT_THAT(problems_with("roles.server.count=2"),
              HasSubstr("nothing for servers to do under trainer.sync = \"ds-sync\""));
  EXPECT_THAT(problems_with("control.share_steps=true"),
              HasSubstr("under \"ds-sync\" each worker's update is its own; remove it"));
  EXPECT_THAT(problems_with("trainer.device=cuda"),
              HasSubstr("write device = \"cpu\", or use \"allreduce\""));
  EXPECT_THAT(problems_with("trainer.precision=bf16"), HasSubstr("precision \"fp32\""));
  EXPECT_THAT(problems_with("trainer.collective=nccl"), HasSubstr("write \"auto\""));
  EXPECT_THAT(problems_with("trainer.embedding_gradients=sparse"),
              HasSubstr("no gradient travels, and the whole table does: remove it"));
  EXPECT_THAT(problems_with("trainer.backup_workers=1"), HasSubstr("not \"ds-sync\": remove it"));
  EXPECT_THAT(problems_with("trainer.staleness=9"), HasSubstr("not \"ds-sync\": remove it"));
}

TEST(DsSync, IsForAntdtTrainerAlone) {
  EXPECT_THAT(problems_of(replaced(kDsSyncJob, "count = 4", "count = 4\ncommand = [\"./mine\"]")),
              HasSubstr("names another program: use \"allreduce\""));
  EXPECT_THAT(problems_of(replaced(kDsSyncJob, "count = 4",
                                   "count = 4\ncommand = [\"./mine\"]\nprotocol = \"torchrun\"")),
              HasSubstr("is for antdt-trainer: a program of protocol 'torchrun'"));
}

TEST(DsSync, TheExampleIsAJob) {
  const auto text = read_file(ANTDT_SOURCE_DIR "/examples/ds-sync/job.toml");
  ASSERT_TRUE(text) << text.error().message;
  const std::string some_file = "[\"" ANTDT_SOURCE_DIR "/README.md\"]";  // its data are made
  const auto config =
      load_text(*text, "job.toml", {"data.paths=" + some_file, "data.eval_paths=" + some_file});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->trainer.sync, "ds-sync");
}

}  // namespace
}  // namespace antdt::launcher
