#include "launcher/config/resume_settings.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "core/os/fs.h"
#include "core/schema/keys.h"
#include "tests/launcher/job_text.h"

namespace antdt::launcher {
namespace {

using testing::HasSubstr;

JobConfig job() {
  auto config = load_text(kJob, "/jobs/job.toml");
  EXPECT_TRUE(config) << config.error().message;
  config->job.id = "ctr-1";
  return *config;
}

std::string refusal(const std::string& setting) {
  const auto changed = change_settings(job(), {setting});
  return changed ? "it was changed" : changed.error().message;
}

TEST(ResumeSettings, TimeoutsMayChange) {
  const auto changed =
      change_settings(job(), {"failure.hang_after=5s", "checkpoint.keep=7", "trainer.lr=0.25"});
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ(changed->config.failure.hang_after, std::chrono::seconds(5));
  EXPECT_EQ(changed->config.checkpoint.keep, 7U);
  EXPECT_EQ(changed->config.trainer.lr, 0.25);
  ASSERT_EQ(changed->changes.size(), 3U);
  EXPECT_EQ(changed->changes[1].key, "failure.hang_after");
  EXPECT_EQ(changed->changes[1].before, "\"2m\"");
  EXPECT_EQ(changed->changes[1].after, "\"5s\"");
  EXPECT_THAT(text_of(changed->changes), HasSubstr("failure.hang_after from \"2m\" to \"5s\""));
}

TEST(ResumeSettings, OtherSettingsStayUnchanged) {
  const JobConfig before = job();
  auto changed = change_settings(before, {"failure.hang_after=5s"});
  ASSERT_TRUE(changed) << changed.error().message;
  changed->config.failure.hang_after = before.failure.hang_after;
  EXPECT_EQ(to_json(changed->config), to_json(before));
}

TEST(ResumeSettings, AValueThatIsTheSameIsNoChange) {
  const auto changed = change_settings(job(), {"failure.hang_after=120s"});
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_TRUE(changed->changes.empty());
}

TEST(ResumeSettings, TheCountWithinARangeStays) {
  JobConfig config = job();
  config.roles.worker.min = 2;
  config.roles.worker.max = 6;
  config.roles.worker.count = 5;
  const auto changed = change_settings(config, {"roles.worker.resources.cpus=2"});
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ(changed->config.roles.worker.count, 5U);
  EXPECT_EQ(changed->config.roles.worker.resources.cpus, 2);
}

TEST(ResumeSettings, SettingsThatTheJournalAndCheckpointsDependOnAreRefusedWithTheReason) {
  EXPECT_THAT(refusal("batch.global=64"), HasSubstr("plan in the journal"));
  EXPECT_THAT(refusal("data.records=99"), HasSubstr("records are known by number"));
  EXPECT_THAT(refusal("job.epochs=9"), HasSubstr("the journal goes by them"));
  EXPECT_THAT(refusal("trainer.model=dlrm"), HasSubstr("model, optimizer and sync"));
  EXPECT_THAT(refusal("roles.worker.count=9"), HasSubstr("antdt resize"));
  EXPECT_THAT(refusal("cluster.store_prefix=/antdt/bob/"), HasSubstr("the journal"));
  EXPECT_THAT(refusal("schema=1"), HasSubstr("cannot change"));
}

TEST(ResumeSettings, ATableThatIsGivenWholeIsLookedInto) {
  EXPECT_THAT(refusal("trainer={ model = \"lr\", lr = 0.5 }"), HasSubstr("cannot change"));
  EXPECT_THAT(refusal("roles={}"), HasSubstr("cannot change"));
}

TEST(ResumeSettings, AnInvalidValueIsReportedAsForANewRun) {
  EXPECT_THAT(refusal("failure.hang_after=soon"), HasSubstr("failure.hang_after"));
  EXPECT_THAT(refusal("failure.hang_afer=5s"), HasSubstr("hang_after"));
  EXPECT_THAT(refusal("failure.hang_after"), HasSubstr("key=value"));
}

TEST(ResumeSettings, EveryKeyOfAJobFileMayChangeOrHasAReason) {
  const std::vector<std::string> may = {"failure", "checkpoint", "control", "cluster", "logs",
                                        "metrics", "hooks",      "domain",  "domain[]"};
  for (const schema::Key& key : schema::keys()) {
    const std::string section(key.path.substr(0, key.path.find('.')));
    const bool in_section = std::ranges::find(may, section) != may.end();
    const bool changes = in_section || key.path.find(".resources.") != key.path.npos ||
                         key.path.starts_with("trainer.gaia.") || key.path == "trainer.lr" ||
                         key.path == "trainer.collective";
    if (key.path == "cluster.store" || key.path == "cluster.store_prefix") continue;
    EXPECT_EQ(why_fixed(key.path).empty(), changes) << key.path;
  }
}

TEST(ResumeSettings, TheConfigurationOfBeforeIsKeptBesideTheNewOne) {
  const std::filesystem::path run = testing::TempDir() + "antdt-resume-settings";
  std::filesystem::remove_all(run);
  std::filesystem::create_directories(run);
  ASSERT_TRUE(write_file_atomic(run / "job.json", to_json(job()), 0600));
  ASSERT_TRUE(write_file_atomic(run / "effective.toml", to_toml(job()), 0600));
  for (const std::string after : {"5s", "6s"}) {
    const auto before = load_effective(run);
    ASSERT_TRUE(before) << before.error().message;
    const auto changed = change_settings(*before, {"failure.hang_after=" + after});
    ASSERT_TRUE(changed) << changed.error().message;
    ASSERT_TRUE(write_effective(run, changed->config));
  }
  EXPECT_EQ(load_effective(run)->failure.hang_after, std::chrono::seconds(6));
  EXPECT_THAT(*read_file(run / "effective.toml"), HasSubstr("hang_after = \"6s\""));
  EXPECT_EQ(*read_file(run / "job.1.json"), to_json(job()));
  EXPECT_THAT(*read_file(run / "effective.2.toml"), HasSubstr("hang_after = \"5s\""));
  std::filesystem::remove_all(run);
}

}  // namespace
}  // namespace antdt::launcher
