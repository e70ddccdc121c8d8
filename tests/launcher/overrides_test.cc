#include "launcher/config/overrides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launcher/job_text.h"

namespace antdt::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

JobConfig with(const std::vector<std::string>& overrides) {
  const auto config = load_text(kJob, "job.toml", overrides);
  EXPECT_TRUE(config) << (config ? "" : config.error().message);
  return config.value_or(JobConfig{});
}

TEST(Override, ReplacesWhatTheFileSays) {
  EXPECT_EQ(with({"batch.global=1024"}).batch.global, 1024U);
  EXPECT_EQ(with({"batch.global=1024", "batch.global=2048"}).batch.global, 2048U);
}

TEST(Override, MakesTablesThatTheFileDoesNotHave) {
  EXPECT_EQ(with({"control.solution=none"}).control.solution, "none");
  EXPECT_EQ(with({"roles.worker.resources.memory=2GiB"}).roles.worker.resources.memory_bytes,
            2ULL << 30);
}

TEST(Override, TakesBareStringsWhereTheKeyWantsThem) {
  EXPECT_EQ(with({"job.name=7"}).job.name, "7");
  EXPECT_EQ(with({"checkpoint.every=5m"}).checkpoint.every, std::chrono::minutes(5));
  EXPECT_THAT(with({"roles.worker.command=./mine"}).roles.worker.command, ElementsAre("./mine"));
}

TEST(Override, TakesTomlValues) {
  EXPECT_THAT(with({"trainer.hidden=[32, 16]"}).trainer.hidden, ElementsAre(32U, 16U));
  EXPECT_THAT(with({"trainer.cin_layers=[24]"}).trainer.cin_layers, ElementsAre(24U));
  EXPECT_THAT(with({"trainer.bottom_hidden=[]"}).trainer.bottom_hidden, IsEmpty());
  EXPECT_EQ(with({"roles.worker.count={ min = 2, max = 3 }"}).roles.worker.min, 2U);
  EXPECT_EQ(with({R"(inject=[{ workers = ["w1"], slowdown = 3.0 }])"}).inject.at(0).slowdown, 3.0);
}

TEST(Override, KeysOfOneTableAreWrittenAsEachAlone) {
  EXPECT_EQ(inline_table("inject", {"workers=w2", "slowdown=3", "from=5s"}).value(),
            R"({ workers = ["w2"], slowdown = 3, from = "5s" })");
  EXPECT_EQ(inline_table("inject", {R"(workers=["w1", "w2"])"}).value(),
            R"({ workers = ["w1", "w2"] })");
  for (const char* text : {"workers", "=3", "inject.workers=w1", "a b=3"}) {
    const auto refused = inline_table("inject", {text});
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().message,
              std::string(text) + ": write KEY=VALUE, with a key of [[inject]]");
  }
}

TEST(Override, IsNamedInErrors) {
  EXPECT_EQ(problems_of(kJob, {"batch.global=many"}),
            "--set batch.global=many: batch.global: must be a whole number, not a string");
  EXPECT_EQ(problems_of(kJob, {"batch.gobal=3"}),
            "--set batch.gobal=3: batch.gobal: unknown key: did you mean 'global'?");
  EXPECT_EQ(
      problems_of(kJob, {"inject=[{ wokers = [\"*\"], workers = [\"*\"] }]"}),
      "--set inject=[{ wokers = [\"*\"], workers = [\"*\"] }]: inject[0].wokers: unknown key: "
      "did you mean 'workers'?");
}

TEST(Override, ThatIsNoAssignmentOrGoesThroughAValueIsRefused) {
  EXPECT_THAT(problems_of(kJob, {"batch.global"}), HasSubstr("write key=value"));
  EXPECT_THAT(problems_of(kJob, {"=3"}), HasSubstr("write key=value"));
  EXPECT_THAT(problems_of(kJob, {"job.name.first=a"}),
              HasSubstr("--set job.name.first=a: job.name.first: 'job.name' is not a table"));
}

}  // namespace
}  // namespace antdt::launcher
