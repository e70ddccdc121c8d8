// job.json of builds that knew fewer keys, or more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/os/fs.h"
#include "core/schema/job_reader.h"
#include "core/schema/keys.h"
#include "launcher/config/toml_reader.h"
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
[[domain]]
name = "east"
hosts = ["a"]
)";

// Keys that the jobs above set, or that follow from those.
const std::set<std::string_view> kWritten = {
    "job.epochs",    "roles.worker.restart", "roles.server.count",
    "data.format",   "data.records",         "batch.global",
    "trainer.sync",  "trainer.model",        "emulated.device",
    "inject",        "inject[].workers",     "inject[].slowdown",
    "device",        "device[].class",       "domain",
    "domain[].name", "domain[].hosts"};

Json json_of(const std::string& text) {
  const auto config = load_text(text, "/x/job.toml");
  EXPECT_TRUE(config) << (config ? "" : config.error().message);
  return Json::parse(to_json(config.value()));
}

// The position of a key in job.json: "inject[].delay" is "/inject/0/delay_us".
Json::json_pointer pointer(const schema::Key& key) {
  std::string path = "/" + std::string(schema::parent(key.path)) + "/" + schema::json_name(key);
  for (const auto& [from, to] :
       {std::pair("[]", "/0"), std::pair(".", "/"), std::pair("//", "/")}) {
    for (std::size_t at = path.find(from); at != std::string::npos; at = path.find(from, at + 1)) {
      path.replace(at, std::string(from).size(), to);
    }
  }
  return Json::json_pointer(path);
}

// All values of `json` by their pointers; lists are values.
void collect(const Json& json, const Json::json_pointer& at, std::map<std::string, Json>& values) {
  for (const auto& [name, value] : json.items()) {
    if (value.is_object() && name != "env" && name != "user") {
      collect(value, at / name, values);
    } else {
      values[(at / name).to_string()] = value;
    }
  }
}

// Names that a run adds to what its user wrote, or derives from it.
const std::set<std::string> kDerived = {"/schema",
                                        "/job/id",
                                        "/job/directory",
                                        "/data/shard_records",
                                        "/roles/worker/min",
                                        "/roles/worker/max",
                                        "/roles/worker/replicas",
                                        "/roles/server/min",
                                        "/roles/server/max",
                                        "/roles/server/protocol",
                                        "/roles/server/restart",
                                        "/roles/server/trace"};

TEST(JobKeys, TheConfigurationHasAllKeysOfTheTableAndNoOthers) {
  std::map<std::string, Json> values;
  const std::string job =
      replaced(kServersJob, "[trainer]\n", "[trainer]\nmodel = \"emulated\"\n") + kDrills;
  collect(json_of(job), Json::json_pointer(), values);
  for (const char* list : {"emulated.device", "inject", "device", "domain", "data.columns"}) {
    std::string at = "/" + std::string(list);
    std::ranges::replace(at, '.', '/');
    const Json items = values.at(at);
    if (!items.empty()) collect(items[0], Json::json_pointer(at + "/0"), values);
  }
  std::set<std::string> expected;
  for (const schema::Key& key : schema::keys()) {
    if (key.path.starts_with("data.columns[]")) continue;  // this job has none
    const bool counts = key.type == schema::KeyType::kCount;
    expected.insert(counts ? "/roles/worker/count" : pointer(key).to_string());
  }
  for (const std::string& at : expected) EXPECT_TRUE(values.contains(at)) << at;
  for (const auto& [at, value] : values) {
    EXPECT_TRUE(expected.contains(at) || kDerived.contains(at)) << at << " is in no table";
  }
}

TEST(JobKeys, JobTomlAndJobJsonHaveTheSameDefaults) {
  for (const schema::Key& key : schema::keys()) {
    const bool is_path = key.type == schema::KeyType::kDirectory;
    if (key.fallback.empty() || is_path || key.type == schema::KeyType::kCount) continue;
    std::string section(schema::parent(key.path));
    if (section.ends_with("[]")) section.replace(section.size() - 2, 2, "[0]");
    EXPECT_EQ(default_values(section).at(schema::json_name(key)), schema::default_value(key))
        << key.path;
  }
}

TEST(OlderJob, AKeyThatCameLaterHasItsDefault) {
  const Json whole =
      json_of(replaced(kServersJob, "[trainer]\n", "[trainer]\nmodel = \"emulated\"\n") + kDrills);
  for (const schema::Key& key : schema::keys()) {
    if (key.fallback.empty() || key.type == schema::KeyType::kCount) continue;
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

TEST(OlderJob, DevicesAreGpusUnderTheirOlderName) {
  const auto with = [](const std::string& resources) {
    return replaced(kJob, "count = 4\n", "count = 4\nresources = { " + resources + " }\n");
  };
  EXPECT_EQ(load_text(with("devices = 2"), "job.toml").value().roles.worker.resources.gpus, 2U);
  EXPECT_EQ(load_text(kJob, "job.toml", {"roles.worker.resources.devices=3"})
                .value()
                .roles.worker.resources.gpus,
            3U);
  EXPECT_THAT(problems_of(with("devices = 2, gpus = 2")),
              HasSubstr("roles.worker.resources.gpus: is also written as 'devices'"));
  EXPECT_THAT(problems_of(with("devices = -1")), HasSubstr("roles.worker.resources.gpus"));
  Json older = json_of(kJob);
  Json& resources = older["roles"]["worker"]["resources"];
  resources.erase("gpus");
  resources["devices"] = 5;
  EXPECT_EQ(from_json(older.dump()).value().roles.worker.resources.gpus, 5U);
  EXPECT_THAT(problems_of(with("gpus = 1") + "[roles.worker.env]\nCUDA_VISIBLE_DEVICES = \"0\"\n"),
              HasSubstr("is set by the agent for the GPUs that it leases"));
}

TEST(OlderJob, ASectionThatCameLaterHasItsDefaults) {
  const Json whole = json_of(kJob);
  Json older = whole;
  older.erase("emulated");
  older.erase("inject");
  older.erase("device");
  older.erase("domain");
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
