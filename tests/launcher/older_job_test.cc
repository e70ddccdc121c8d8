// job.json of builds that knew fewer keys, or more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/fs.h"
#include "launcher/schema.h"
#include "tests/launcher/job_text.h"

namespace antdt::launcher {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

const std::string kDrills = R"([emulated]
device = [{ class = "a", flat = "3ms" }]
[[inject]]
workers = ["w1"]
slowdown = 3.0
[[device]]
class = "a"
)";

// What the jobs above say themselves, or follows from what they say.
const std::set<std::string_view> kWritten = {
    "job.epochs",   "roles.worker.restart", "roles.server.count",
    "data.format",  "data.records",         "batch.global",
    "trainer.sync", "trainer.model",        "emulated.device",
    "inject",       "inject[].workers",     "inject[].slowdown",
    "device",       "device[].class"};

Json json_of(const std::string& text) {
  const auto config = load_text(text, "/x/job.toml");
  EXPECT_TRUE(config) << (config ? "" : config.error().message);
  return Json::parse(to_json(config.value()));
}

// Where a key is in job.json: "inject[].delay" is "/inject/0/delay_us".
Json::json_pointer pointer(const Key& key) {
  std::string path = "/" + std::string(parent(key.path)) + "/" + json_name(key);
  for (const auto& [from, to] :
       {std::pair("[]", "/0"), std::pair(".", "/"), std::pair("//", "/")}) {
    for (std::size_t at = path.find(from); at != std::string::npos; at = path.find(from, at + 1)) {
      path.replace(at, std::string(from).size(), to);
    }
  }
  return Json::json_pointer(path);
}

TEST(OlderJob, AKeyThatCameLaterHasItsDefault) {
  const Json whole =
      json_of(replaced(kServersJob, "[trainer]\n", "[trainer]\nmodel = \"emulated\"\n") + kDrills);
  for (const Key& key : schema()) {
    if (key.fallback.empty() || key.type == KeyType::kCount) continue;
    const Json::json_pointer at = pointer(key);
    ASSERT_TRUE(whole.contains(at)) << key.path;
    if (kWritten.contains(key.path)) continue;
    Json older = whole;
    older.at(at.parent_pointer()).erase(at.back());
    const auto config = from_json(older.dump());
    ASSERT_TRUE(config) << key.path << ": " << config.error().message;
    EXPECT_EQ(Json::parse(to_json(*config)).at(at), whole.at(at)) << key.path;
  }
}

TEST(OlderJob, ASectionThatCameLaterHasItsDefaults) {
  const Json whole = json_of(kJob);
  Json older = whole;
  older.erase("emulated");
  older.erase("inject");
  older.erase("device");
  older["roles"].erase("server");
  const auto config = from_json(older.dump());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(Json::parse(to_json(*config)), whole);
}

TEST(OlderJob, AKeyOfANewerBuildIsRefusedWithTheWayOut) {
  TempDir dir;
  Json newer = json_of(kJob);
  newer["trainer"]["wings"] = 2;
  ASSERT_TRUE(write_file_atomic(dir / "job.json", newer.dump()));
  const auto config = load_effective(dir.path());
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(config.error().message,
            (dir / "job.json") +
                ": the job has a key that this build of AntDT does not know: trainer.wings. It "
                "was written by a newer one; use the programs of one build");
}

}  // namespace
}  // namespace antdt::launcher
