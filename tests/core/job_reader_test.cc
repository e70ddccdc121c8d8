#include "core/schema/job_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::schema {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
T read(const std::string& json, const char* path) {
  T value{};
  JobReader job(json);
  job.read(path, value);
  EXPECT_TRUE(job.status()) << path << ": " << job.status().error().message;
  return value;
}

TEST(JobReader, AValueIsFoundUnderTheNameThatItsTypeGivesIt) {
  EXPECT_EQ(read<std::string>(R"({"trainer": {"model": "mlp"}})", "trainer.model"), "mlp");
  EXPECT_EQ(read<milliseconds>(R"({"failure": {"hang_after_ms": 7}})", "failure.hang_after"),
            milliseconds(7));
  EXPECT_EQ(read<std::uint64_t>(R"({"logs": {"max_bytes": 70000}})", "logs.max"), 70000U);
}

TEST(JobReader, MissingAndNullValuesTakeTheDefaultOfTheTable) {
  for (const char* json : {"{}", R"({"trainer": {}})", R"({"trainer": 3})",
                           R"({"trainer": {"lr": null, "hidden": null}})"}) {
    EXPECT_EQ(read<double>(json, "trainer.lr"), 0.001) << json;
    EXPECT_THAT(read<std::vector<std::uint32_t>>(json, "trainer.hidden"), ElementsAre(128, 64));
  }
  EXPECT_EQ(read<milliseconds>("{}", "failure.hang_after"), std::chrono::minutes(2));
  EXPECT_EQ(read<std::uint64_t>("{}", "logs.max"), 64U << 20);
  EXPECT_EQ(read<bool>("{}", "data.header"), false);
}

TEST(JobReader, EveryDefaultOfTheTableCanBeRead) {
  for (const Key& key : keys()) {
    const bool none = key.fallback.empty() || key.type == KeyType::kCount;
    EXPECT_EQ(default_value(key).is_null(), none) << key.path;
  }
}

TEST(JobReader, TheTablesOfAListAreReadInTheirOrder) {
  JobReader job(R"({"inject": [{"slowdown": 2.5}, {"delay_us": 3, "for_ms": 4}]})");
  std::vector<double> slowdowns;
  std::vector<std::chrono::nanoseconds> delays;
  std::chrono::nanoseconds lasts{};
  job.each("inject", [&] {
    job.read("inject[].slowdown", slowdowns.emplace_back());
    job.read("inject[].delay", delays.emplace_back());
    job.read("inject[].for", lasts);
  });
  EXPECT_TRUE(job.status());
  EXPECT_THAT(slowdowns, ElementsAre(2.5, 1.0));
  EXPECT_THAT(delays, ElementsAre(std::chrono::nanoseconds(0), std::chrono::microseconds(3)));
  EXPECT_EQ(lasts, milliseconds(4));
}

std::string problem(const std::string& json) {
  JobReader job(json);
  std::uint32_t threads = 5;
  job.read("trainer.threads", threads);
  job.each("emulated.device", [&] {
    std::string name;
    job.read("emulated.device[].class", name);
  });
  EXPECT_FALSE(job.status()) << json;
  return job.status() ? "" : job.status().error().message;
}

TEST(JobReader, AnErrorNamesTheKey) {
  EXPECT_THAT(problem("{"), HasSubstr("is no JSON"));
  EXPECT_THAT(problem(R"({"trainer": {"threads": -1}})"), HasSubstr("trainer.threads"));
  EXPECT_THAT(problem(R"({"trainer": {"threads": "two"}})"), HasSubstr("trainer.threads"));
  EXPECT_THAT(problem(R"({"emulated": {"device": 3}})"),
              HasSubstr("emulated.device of the job's configuration: it is not a list"));
  EXPECT_THAT(problem(R"({"emulated": {"device": [{}]}})"),
              HasSubstr("emulated.device[].class of the job's configuration: it is missing"));
}

}  // namespace
}  // namespace antdt::schema
