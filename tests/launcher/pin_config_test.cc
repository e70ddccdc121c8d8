// data.pin and the data of each [[domain]].
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "launcher/config/job_config.h"
#include "launcher/config/rules/pin_checks.h"

namespace antdt::launcher {
namespace {

using ::testing::HasSubstr;

std::string numbers(const std::string& east, const std::string& west,
                    const std::string& more = "") {
  return "schema = 1\n[job]\nname = \"j\"\n[roles.worker]\ncount = 4\ncommand = "
         "[\"antdt-trainer\"]\n"
         "[data]\nformat = \"index\"\nrecords = 100\npin = \"domain\"\n[batch]\nglobal = 64\n" +
         more + "[[domain]]\nname = \"east\"\nhosts = [\"a\"]\ndata = " + east +
         "\n[[domain]]\nname = \"west\"\nhosts = [\"b\"]\ndata = " + west + "\n";
}

std::string problems_in(const std::string& text) {
  const auto config = load_text(text, "/tmp/job.toml");
  return config ? "" : config.error().message;
}

TEST(PinConfig, RangesOfRecordsBecomePartsInTheirOrder) {
  const auto config = load_text(numbers("[\"60:100\", \"0:20\"]", "[\"20:60\"]"), "/tmp/job.toml");
  ASSERT_TRUE(config) << config.error().message;
  const auto parts = pinned_parts(
      *config, [](const auto& key, const auto& text) { ADD_FAILURE() << key << ": " << text; });
  EXPECT_EQ(parts, (std::vector<PinnedPart>{
                       {"train", "east", 20}, {"train", "west", 40}, {"train", "east", 40}}));
}

TEST(PinConfig, EachRecordIsInOneDomain) {
  EXPECT_THAT(problems_in(numbers("[\"0:20\"]", "[\"30:100\"]")),
              HasSubstr("records 20:30 are in no domain"));
  EXPECT_THAT(problems_in(numbers("[\"0:50\"]", "[\"50:90\"]")),
              HasSubstr("records 90:100 are in no domain"));
  EXPECT_THAT(problems_in(numbers("[\"0:50\"]", "[\"40:100\"]")),
              HasSubstr("records 40:50 are in domain 'east' and in 'west'"));
  for (const char* range :
       {"[\"50\"]", "[\"50:50\"]", "[\"50:101\"]", "[\"a:b\"]", "[\"50:100x\"]"}) {
    EXPECT_THAT(problems_in(numbers("[\"0:50\"]", range)), HasSubstr("is no range of records"));
  }
}

TEST(PinConfig, WhatCannotBePinnedIsRefused) {
  const std::string good = numbers("[\"0:50\"]", "[\"50:100\"]");
  EXPECT_EQ(problems_in(good), "");
  EXPECT_THAT(problems_in(numbers("[\"0:50\"]", "[\"50:100\"]", "[control]\nshare_steps = true\n")),
              HasSubstr("control.share_steps: lets workers compute records of their neighbours"));
  std::string without = good;
  without.replace(without.find("pin = \"domain\"\n"), 15, "");
  EXPECT_THAT(problems_in(without), HasSubstr("domain[0].data: pins data to a domain: write "
                                              "data.pin = \"domain\" as well"));
  EXPECT_THAT(problems_in(numbers("[]", "[]")),
              HasSubstr("needs to know what is where: write the data of each [[domain]]"));
}

TEST(PinConfig, NoWayOfSynchronisationCanBeTriedForPinnedData) {
  EXPECT_THAT(
      problems_in(numbers("[\"0:50\"]", "[\"50:100\"]", "[trainer]\nsync = \"auto\"\n")),
      HasSubstr("trainer.sync: 'auto': with data.pin = \"domain\" no way of synchronisation "
                "can be tried"));
  const auto pinned = load_text(numbers("[\"0:50\"]", "[\"50:100\"]"), "/tmp/job.toml");
  ASSERT_TRUE(pinned) << pinned.error().message;
  EXPECT_THAT(why_pins_are_not_planned(*pinned), HasSubstr("name a way in trainer.sync"));
  EXPECT_EQ(why_pins_are_not_planned(JobConfig{}), "");
}

class PinnedFiles : public ::testing::Test {
 protected:
  PinnedFiles() {
    for (const char* name : {"a1.tsv", "b1.tsv", "a2.tsv", "eval.tsv"}) {
      EXPECT_TRUE(write_file_atomic(dir_.path() + "/" + name, "x", 0600));
    }
  }
  [[nodiscard]] Result<JobConfig> load_with(const std::string& east, const std::string& west,
                                            const std::string& data = "") const {
    return load_text(
        "schema = 1\n[job]\nname = \"j\"\n[roles.worker]\ncount = 2\n"
        "command = [\"p\"]\n[data]\nformat = \"criteo\"\npin = \"domain\"\n"
        "paths = [\"a1.tsv\", \"b1.tsv\", \"a2.tsv\"]\neval_paths = [\"eval.tsv\"]\n" +
            data +
            "[batch]\nglobal = 64\n[[domain]]\nname = \"east\"\n"
            "hosts = [\"a\"]\ndata = " +
            east + "\n[[domain]]\nname = \"west\"\nhosts = [\"b\"]\ndata = " + west + "\n",
        dir_.path() + "/job.toml");
  }
  [[nodiscard]] std::string problems_with(const std::string& east, const std::string& west,
                                          const std::string& data = "") const {
    const auto config = load_with(east, west, data);
    return config ? "" : config.error().message;
  }
  TempDir dir_;
};

TEST_F(PinnedFiles, GlobsNameTheFilesOfADomain) {
  const auto config = load_with("[\"a*.tsv\"]", "[\"b1.tsv\"]");
  ASSERT_TRUE(config) << config.error().message;
  const auto parts = pinned_parts(*config, [](const auto&, const auto&) {});
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].files, std::vector{dir_.path() + "/a1.tsv"});
  EXPECT_EQ(parts[1].domain, "west");
  EXPECT_EQ(parts[2].files, std::vector{dir_.path() + "/a2.tsv"});
}

TEST_F(PinnedFiles, EachFileIsInOneDomainAndEachPatternNamesOne) {
  EXPECT_THAT(problems_with("[\"a1.tsv\"]", "[\"b1.tsv\"]"), HasSubstr("a2.tsv' is in no domain"));
  EXPECT_THAT(problems_with("[\"a*.tsv\"]", "[\"b1.tsv\", \"a2.tsv\"]"),
              HasSubstr("a2.tsv' is in domain 'east' already"));
  EXPECT_THAT(problems_with("[\"a*.tsv\"]", "[\"b1.tsv\", \"c.tsv\"]"),
              HasSubstr("c.tsv' is none of the files of data.paths and data.eval_paths"));
  EXPECT_THAT(problems_with("[\"a*.tsv\"]", "[\"b1.tsv\"]", "encode = \"vocabulary\"\n"),
              HasSubstr("data.encode: \"vocabulary\" needs all training data in one place"));
}

TEST_F(PinnedFiles, WorkersMustBeWhereDataAre) {
  const auto config = load_with("[\"a*.tsv\"]", "[\"b1.tsv\"]");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(unfit_for_pins(*config, {"a", "b"}), "");
  EXPECT_THAT(unfit_for_pins(*config, {"a", "a"}),
              HasSubstr("domain 'west' has data and no worker"));
  EXPECT_THAT(unfit_for_pins(*config, {"a", "b", "c"}), HasSubstr("w2 on c is in no domain"));
}

}  // namespace
}  // namespace antdt::launcher
