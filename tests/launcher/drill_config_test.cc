// [[inject]], [[device]] and [emulated] in job.toml.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "tests/launcher/job_text.h"

namespace antdt::launcher {
namespace {

using testing::HasSubstr;

const std::string kEmulated = kJob + R"([trainer]
model = "emulated"
)";
std::string device(const std::string& keys) { return "[[emulated.device]]\n" + keys + "\n"; }

TEST(DrillConfig, AnInjectionNamesWorkersOfTheJobOrAHost) {
  EXPECT_THAT(problems_of(kJob + "[[inject]]\nworkers = [\"w4\"]\nslowdown = 3\n"),
              HasSubstr("job.toml:13:1: inject[0].workers: 'w4' is no worker of this job: w0 to "
                        "w3, or \"*\""));
  EXPECT_THAT(problems_of(kJob + "[[inject]]\nslowdown = 3\n"),
              HasSubstr("job.toml:12:1: inject[0]: names nobody: write workers"));
  const auto config = load_text(kJob +
                                    "[[inject]]\nworkers = [\"w3\"]\ndelay_per_sample = "
                                    "\"100us\"\n[[inject]]\nhost = \"b\"\n",
                                "j");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->inject.at(0).delay_per_sample, std::chrono::microseconds(100));
  EXPECT_EQ(config->inject.at(1).host, "b");
}

TEST(DrillConfig, LinksDataAndThrottlingAreSaidInTheirUnits) {
  const std::string rule = kJob + "[[inject]]\nworkers = [\"w1\"]\n";
  const auto config = load_text(
      rule + "latency = \"2ms\"\nbandwidth = \"1MiB\"\ndata_delay = \"5ms\"\nthrottle = 0.33\n",
      "j");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->inject.at(0).latency, std::chrono::milliseconds(2));
  EXPECT_EQ(config->inject.at(0).bandwidth, 1U << 20);
  EXPECT_EQ(config->inject.at(0).data_delay, std::chrono::milliseconds(5));
  EXPECT_EQ(config->inject.at(0).throttle, 0.33);
  EXPECT_THAT(problems_of(rule + "throttle = 0.0\n"), HasSubstr("inject[0].throttle"));
  EXPECT_THAT(problems_of(rule + "throttle = 1.5\n"), HasSubstr("inject[0].throttle"));
}

TEST(DrillConfig, WindowsArePartsOfTheirTime) {
  const std::string rule = kJob + "[[inject]]\nworkers = [\"*\"]\n";
  EXPECT_THAT(problems_of(rule + "for = \"1s\"\n"),
              HasSubstr("job.toml:14:1: inject[0].for: must be no longer than every"));
  EXPECT_THAT(problems_of(rule + "from = \"3s\"\nuntil = \"2s\"\n"),
              HasSubstr("inject[0].until: must be later than from"));
  const auto config = load_text(rule + "every = \"10s\"\nfor = \"1s\"\nchance = 0.5\n", "j");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->inject.at(0).lasts, std::chrono::seconds(1));
  EXPECT_EQ(config->inject.at(0).chance, 0.5);
}

TEST(DrillConfig, ATraceMustBeThereAndReadable) {
  const TempDir dir;
  const std::string rule = kJob + "[[inject]]\nworkers = [\"*\"]\ntrace = \"t.csv\"\n";
  const std::string path = dir / "job.toml";
  const auto problem = [&] {
    const auto config = load_text(rule, path);
    return config ? "" : config.error().message;
  };
  EXPECT_THAT(problem(), HasSubstr("inject[0].trace: '" + (dir / "t.csv") + "' cannot be read"));
  ASSERT_TRUE(write_file_atomic(dir / "t.csv", "a,b\n"));
  EXPECT_THAT(problem(), HasSubstr("inject[0].trace: '" + (dir / "t.csv") + "': line 1: "));
  ASSERT_TRUE(write_file_atomic(dir / "t.csv", "worker,time,batch_time_norm\n0,1,2\n"));
  EXPECT_EQ(problem(), "");
  EXPECT_THAT(problems_of(kJob + "[[inject]]\nworkers = [\"*\"]\ntrace_every = \"1s\"\n"),
              HasSubstr("inject[0].trace_every: is for a trace"));
}

TEST(DrillConfig, EveryEmulatedWorkerHasOneDevice) {
  EXPECT_THAT(problems_of(kEmulated),
              HasSubstr("emulated.device: names devices for 0 of 4 workers: add one"));
  EXPECT_EQ(problems_of(kEmulated + device("class = \"a\"\nflat = \"1ms\"")), "");
  const std::string fast = device("class = \"a\"\nflat = \"1ms\"\nworkers = [\"w0\", \"w1\"]");
  EXPECT_THAT(problems_of(kEmulated + fast), HasSubstr("names devices for 2 of 4 workers"));
  const std::string slow = device("class = \"b\"\nflat = \"1ms\"");
  EXPECT_EQ(problems_of(kEmulated + fast + slow), "");
  EXPECT_THAT(problems_of(kEmulated + fast + fast + slow),
              testing::AllOf(HasSubstr("emulated.device[1].class: 'a' is another class's name"),
                             HasSubstr("emulated.device[1].workers: 'w0' has a device already")));
  EXPECT_THAT(problems_of(kEmulated + slow + replaced(slow, "\"b\"", "\"c\"")),
              HasSubstr("emulated.device[1].workers: is missing"));
  EXPECT_THAT(problems_of(kEmulated + replaced(fast, "\"w1\"", "\"*\"") + slow),
              HasSubstr("emulated.device[0].workers: '*' is no worker of this job: w0 to w3"));
  EXPECT_THAT(problems_of(kJob + slow), HasSubstr("is for trainer.model = \"emulated\", not"));
}

TEST(DrillConfig, DevicesReadBackTheSameAndMayComeByAnOverride) {
  const auto config =
      load_text(kEmulated, "j",
                {R"(emulated.device=[{class = "a", flat = "2ms", flat_until = 8, memory = 256}])",
                 "emulated.noise=0.2", "emulated.parameters=64"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->emulated.device.at(0).flat, std::chrono::milliseconds(2));
  EXPECT_EQ(config->emulated.noise, 0.2);
  const auto again = load_text(to_toml(*config), "j");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_json(*again), to_json(*config));
  EXPECT_EQ(to_json(*from_json(to_json(*config))), to_json(*config));
}

TEST(DrillConfig, ADeviceEntryNamesWorkersOrAHostAndASetting) {
  const auto entry = [](const std::string& keys) { return kJob + "[[device]]\n" + keys + "\n"; };
  EXPECT_THAT(problems_of(entry("workers = [\"w4\"]\nclass = \"a\"")),
              HasSubstr("device[0].workers: 'w4' is no worker of this job: w0 to w3"));
  EXPECT_THAT(problems_of(entry("host = \"b\"")),
              HasSubstr("job.toml:12:1: device[0]: says nothing: write class"));
  const auto config = load_text(
      entry("workers = [\"w0\"]\nclass = \"big\"\n[[device]]\nhost = \"b\"\nmax_micro_batch = 32"),
      "j");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->device.at(0).name, "big");
  EXPECT_EQ(config->device.at(1).host, "b");
  EXPECT_EQ(config->device.at(1).max_micro_batch, 32U);
  const auto again = load_text(to_toml(*config), "j");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_json(*again), to_json(*config));
}

const std::string kDomains =
    "[[domain]]\nname = \"east\"\nhosts = [\"a\"]\nworkers = [\"w0\"]\n"
    "[[domain]]\nname = \"west\"\nworkers = [\"w2\", \"w3\"]\n";

TEST(DrillConfig, DomainsHaveNamesAndEveryProcessIsInOneAtMost) {
  const auto config = load_text(kJob + kDomains, "j");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->domain.at(0).hosts, std::vector<std::string>{"a"});
  EXPECT_EQ(config->domain.at(1).name, "west");
  const auto again = load_text(to_toml(*config), "j");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_json(*again), to_json(*config));
  EXPECT_THAT(problems_of(kJob + replaced(kDomains, "\"west\"", "\"east\"")),
              HasSubstr("domain[1].name: 'east' is another domain's name"));
  EXPECT_THAT(problems_of(kJob + replaced(kDomains, "\"west\"", "\"the west\"")),
              HasSubstr("domain[1].name: 'the west' is no name of a domain"));
  EXPECT_THAT(problems_of(kJob + replaced(kDomains, "\"w3\"", "\"w0\"")),
              HasSubstr("domain[1].workers: 'w0' is in a domain already"));
  EXPECT_THAT(problems_of(kJob + replaced(kDomains, "\"w3\"", "\"w4\"")),
              HasSubstr("domain[1].workers: 'w4' is no worker of this job: w0 to w3"));
  EXPECT_THAT(problems_of(kJob + "[[domain]]\nname = \"east\"\n"),
              HasSubstr("domain[0]: is empty: write hosts"));
}

TEST(DrillConfig, AnInjectionMayNameToWhomMessagesGo) {
  const auto rule = [](const std::string& keys) { return kJob + kDomains + "[[inject]]\n" + keys; };
  const std::string between =
      "domain = \"east\"\nto_domain = \"west\"\nboth_ways = true\nlatency = \"50ms\"\n";
  const auto config = load_text(rule(between), "j");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->inject.at(0).to_domain, "west");
  EXPECT_TRUE(config->inject.at(0).both_ways);
  const auto again = load_text(to_toml(*config), "j");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_json(*again), to_json(*config));
  EXPECT_THAT(problems_of(rule(replaced(between, "\"west\"", "\"north\""))),
              HasSubstr("inject[0].to_domain: 'north' is no domain of this job: east, west"));
  EXPECT_THAT(
      problems_of(rule(between + "slowdown = 2.0\n")),
      HasSubstr("inject[0]: names to whom messages go, which is for latency and bandwidth"));
  EXPECT_THAT(problems_of(rule("domain = \"east\"\nboth_ways = true\nlatency = \"5ms\"\n")),
              HasSubstr("inject[0].both_ways: is for messages between some"));
  EXPECT_THAT(problems_of(rule("workers = [\"w0\"]\nto_workers = [\"w9\"]\nlatency = \"5ms\"\n")),
              HasSubstr("inject[0].to_workers: 'w9' is no worker of this job"));
}

}  // namespace
}  // namespace antdt::launcher
