#include "launcher/config/job_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/os/fs.h"
#include "tests/launcher/job_text.h"

namespace antdt::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(JobConfig, AMissingKeyHasItsDefault) {
  const auto config = load_text(kJob, "job.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->job.name, "ctr");
  EXPECT_EQ(config->job.epochs, 2U);
  EXPECT_EQ(config->roles.worker.count, 4U);
  EXPECT_EQ(config->roles.worker.min, 4U);
  EXPECT_THAT(config->roles.worker.command, ElementsAre("antdt-trainer"));
  EXPECT_EQ(config->roles.worker.restart, "member");
  EXPECT_EQ(config->control.transient_window, std::chrono::seconds(10));
  EXPECT_EQ(config->failure.budgets.at("oom"), 2U);
  EXPECT_EQ(config->data.shard_records, 10U * 512U);
  EXPECT_EQ(config->logs.max_bytes, 64U << 20);
}

TEST(JobConfig, AnUnknownKeyIsNamedWithItsPlaceAndTheKeyThatWasMeant) {
  EXPECT_EQ(problems_of(replaced(kJob, "epochs", "epoch")),
            "job.toml:4:1: job.epoch: unknown key: did you mean 'epochs'?");
}

TEST(JobConfig, AnUnknownKeyIsTheOnlyErrorReported) {
  EXPECT_EQ(problems_of(replaced(kJob, "records", "recods")),
            "job.toml:9:1: data.recods: unknown key: did you mean 'records'?");
  EXPECT_EQ(problems_of(replaced(kJob, "name", "nam")),
            "job.toml:3:1: job.nam: unknown key: did you mean 'name'?");
  EXPECT_EQ(problems_of(replaced(kJob, "roles.worker", "role.worker")),
            "job.toml:5:2: role: unknown key: did you mean 'roles'?");
  EXPECT_EQ(problems_of(replaced(replaced(kJob, "records = 1000", ""), "epochs", "records")),
            "job.toml:4:1: job.records: unknown key: did you mean 'data.records'?");
}

TEST(JobConfig, AMistakeBesideTheRightNameHidesNoOtherMistake) {
  EXPECT_EQ(problems_of(replaced(kJob, "records = 1000", "records = 0\nrecods = 1000")),
            "job.toml:10:1: data.recods: unknown key: did you mean 'records'?\n"
            "job.toml:9:1: data.records: is missing: format \"index\" needs the number of "
            "records");
}

TEST(JobConfig, AKeyInTheWrongTableIsToldItsPlace) {
  EXPECT_EQ(problems_of(replaced(kJob, "epochs = 2", "  shuffle = \"full\"")),
            "job.toml:4:3: job.shuffle: unknown key: did you mean 'data.shuffle'?");
}

TEST(JobConfig, OfAntdtsOwnVariablesOnlyFilesOfLibrariesAreTheUsersToChoose) {
  const std::string env = kJob + "[roles.worker.env]\n";
  for (const char* name : {"ANTDT_LIBRARY", "ANTDT_NCCL_LIBRARY", "ANTDT_CUDART_LIBRARY"}) {
    EXPECT_EQ(problems_of(env + name + " = \"/opt/lib.so.1\"\n"), "");
  }
  for (const char* name : {"ANTDT_SOCKET", "ANTDT_LIBRARY_PATH", "ANTDT_AGENT_LIBRARY"}) {
    EXPECT_THAT(problems_of(env + name + " = \"x\"\n"), HasSubstr("is set by antdt itself"));
  }
}

TEST(JobConfig, MetricsNeedAnAddressAndAHookAProgram) {
  const std::string job = std::string(kJob) + "\n[metrics]\nlisten = \"127.0.0.1:0\"\n" +
                          "[hooks]\nevent = [\"page\", \"me\"]\n";
  const auto config = load_text(job, "job.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->metrics.listen, "127.0.0.1:0");
  EXPECT_THAT(config->hooks.event, ElementsAre("page", "me"));
  EXPECT_THAT(problems_of(replaced(job, "127.0.0.1:0", "9400")),
              HasSubstr("metrics.listen: '9400' must be \"address:port\""));
  EXPECT_THAT(problems_of(replaced(job, "page", "")),
              HasSubstr("hooks.event: must name a program"));
}

TEST(JobConfig, AJournalInEtcdIsEncryptedAndWhatBelongsTogetherIsComplete) {
  const std::string job = kJob + "[cluster]\nstore = \"etcd://127.0.0.1:2379\"\n";
  EXPECT_EQ(problems_of(job), "");
  EXPECT_THAT(problems_of(replaced(job, "etcd:", "http:")),
              HasSubstr("'http://127.0.0.1:2379' does not begin with etcd://"));
  EXPECT_THAT(problems_of(replaced(job, "127.0.0.1", "10.0.0.1")),
              HasSubstr("cluster.store_ca: is missing: without TLS, what the job sends to "
                        "10.0.0.1:2379 can be read and changed on the way"));
  EXPECT_THAT(problems_of(job + "store_user = \"antdt\"\n"),
              HasSubstr("cluster.store_user: comes with cluster.store_password_file"));
  EXPECT_THAT(problems_of(job + "store_lease = \"2500ms\"\n"), HasSubstr("must be whole seconds"));
  EXPECT_EQ(problems_of(job + "store_prefix = \"/antdt/alice/\"\n"), "");
  for (const char* prefix : {"", "/antdt", "antdt/", "/an tdt/"}) {
    EXPECT_THAT(problems_of(fmt::format("{}store_prefix = \"{}\"\n", job, prefix)),
                HasSubstr("cluster.store_prefix: must begin and end with '/'"));
  }
  EXPECT_THAT(problems_of(job + "hosts = [\"h1:7700\"]\n[failure]\norphan_timeout = \"10s\"\n"),
              HasSubstr("failure.orphan_timeout: must be at least 14 s"));
  EXPECT_THAT(problems_of(kJob + "[cluster]\nstore_user = \"antdt\"\n"),
              HasSubstr("cluster.store_user: is for a journal in etcd"));
}

TEST(JobConfig, HostsHaveTheUsualPortUnlessAnotherIsWritten) {
  const std::string job = kJob + "[cluster]\nhosts = [\"h1\", \"h2:7800\"]\n";
  const auto config = load_text(job, "job.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->cluster.hosts, ElementsAre("h1:7700", "h2:7800"));
  EXPECT_THAT(problems_of(replaced(job, "h2:7800", "h1:7700")), HasSubstr("is listed twice"));
  EXPECT_THAT(problems_of(replaced(job, "h2:7800", "h2:port")),
              HasSubstr("'h2:port' must be \"host\" or \"host:port\""));
}

TEST(JobConfig, AnUnknownTableIsNamed) {
  EXPECT_THAT(problems_of(kJob + "[traner]\nmodel = \"lr\"\n"),
              "job.toml:12:2: traner: unknown key: did you mean 'trainer'?");
}

TEST(JobConfig, AWrongTypeIsNamedWithBothTypes) {
  EXPECT_EQ(problems_of(replaced(kJob, "epochs = 2", "epochs = 2.5")),
            "job.toml:4:1: job.epochs: must be a whole number, not a decimal number");
  EXPECT_EQ(problems_of(replaced(kJob, "epochs = 2", "epochs = \"two\"")),
            "job.toml:4:1: job.epochs: must be a whole number, not a string");
  EXPECT_EQ(problems_of(replaced(kJob, "name = \"ctr\"", "name = 7")),
            "job.toml:3:1: job.name: must be a string, not a whole number");
  EXPECT_EQ(problems_of(kJob + "[checkpoint]\nevery = 60\n"),
            "job.toml:13:1: checkpoint.every: must be a time such as \"10s\", not a whole number");
}

TEST(JobConfig, AMissingKeyIsNamedWithItsTable) {
  EXPECT_THAT(problems_of(replaced(kJob, "name = \"ctr\"", "")),
              HasSubstr("job.toml:2:2: job.name: is missing: a string"));
  EXPECT_THAT(problems_of("[roles.worker]\n"),
              testing::AllOf(HasSubstr("job.toml: schema: is missing"),
                             HasSubstr("job.toml:1:8: roles.worker.count: is missing")));
}

TEST(JobConfig, AValueOutOfRangeIsNamedWithTheRange) {
  EXPECT_EQ(problems_of(replaced(kJob, "epochs = 2", "epochs = 0")),
            "job.toml:4:1: job.epochs: must be at least 1");
  EXPECT_EQ(problems_of(replaced(kJob, "schema = 1", "schema = 2")),
            "job.toml:1:1: schema: this job.toml is for a newer release: it has format 2, and this "
            "release of antdt reads format 1");
  EXPECT_EQ(problems_of(kJob + "[failure]\nhang_after = \"10ms\"\n"),
            "job.toml:13:1: failure.hang_after: must be at least 1s");
}

TEST(JobConfig, AWrongChoiceIsNamedWithTheChoices) {
  EXPECT_EQ(problems_of(kJob + "[trainer]\noptimizer = \"adm\"\n"),
            "job.toml:13:1: trainer.optimizer: 'adm' is none of \"sgd\", \"adagrad\", \"adam\" "
            "(did you mean 'adam'?)");
}

TEST(JobConfig, EveryProblemIsListedAndNotOnlyTheFirst) {
  const std::string text =
      replaced(replaced(kJob, "epochs = 2", "epochs = -1"), "global = 512", "globl = 512");
  const std::string problems = problems_of(text + "[data.on_bad_record]\naction = 3\n");
  EXPECT_EQ(std::count(problems.begin(), problems.end(), '\n'), 2);
  EXPECT_THAT(problems, HasSubstr("job.toml:4:1: job.epochs"));
  EXPECT_THAT(problems, HasSubstr("job.toml:11:1: batch.globl"));
  EXPECT_THAT(problems, HasSubstr("job.toml:13:1: data.on_bad_record.action"));
}

TEST(JobConfig, ASyntaxErrorIsNamedWithLineAndColumn) {
  EXPECT_THAT(problems_of("schema = 1\n[job\nname = 3\n"),
              testing::StartsWith("job.toml:2:5: this is not TOML: "));
}

// Debug builds of the TOML parser have an assertion here.
TEST(JobConfig, AHeaderWithoutANameIsAnErrorInEveryBuild) {
  EXPECT_THAT(problems_of("[=]\n"), testing::StartsWith("job.toml:1:2: this is not TOML: "));
}

TEST(JobConfig, AMissingJobFileIsNamed) {
  const auto config = load("/nonexistent/job.toml");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(config.error().message, HasSubstr("/nonexistent/job.toml"));
}

TEST(JobConfig, DeliveryOtherThanExactlyOnceIsRefusedUnderAllReduceWithTheReason) {
  EXPECT_THAT(
      problems_of(replaced(kJob, "records = 1000", "records = 1000\ndelivery = \"at-least-once\"")),
      testing::StartsWith("job.toml:10:1: data.delivery: 'at-least-once' is refused under "
                          "sync = \"allreduce\": a step is applied by all"));
  EXPECT_THAT(
      problems_of(replaced(kJob, "records = 1000", "records = 1000\ndelivery = \"sometimes\"")),
      HasSubstr("'sometimes' is none of \"exactly-once\""));
}

TEST(JobConfig, ABatchTooSmallForItsWorkersIsRefused) {
  EXPECT_THAT(problems_of(replaced(kJob, "global = 512", "global = 12\nmin = 4")),
              HasSubstr("job.toml:11:1: batch.global: 12 is too small for 4 workers with at least "
                        "4 each: make it 16 or more"));
  EXPECT_THAT(
      problems_of(replaced(kJob, "global = 512", "global = 512\nmax = 64\nadjust = \"size\"")),
      HasSubstr("batch.max: 64 for each of 4 workers makes less than batch.global 512"));
}

TEST(JobConfig, ACountMayBeARange) {
  const auto config = load_text(replaced(kJob, "count = 4", "count = { min = 2, max = 8 }"), "j");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->roles.worker.min, 2U);
  EXPECT_EQ(config->roles.worker.max, 8U);
  EXPECT_EQ(config->roles.worker.count, 8U);
  EXPECT_THAT(problems_of(replaced(kJob, "count = 4", "count = { min = 9, max = 8 }")),
              HasSubstr("job.toml:6:1: roles.worker.count: min 9 is more than max 8"));
  EXPECT_THAT(problems_of(replaced(kJob, "count = 4", "count = { least = 9, max = 8 }")),
              HasSubstr("job.toml:6:11: roles.worker.count.least: unknown key"));
}

TEST(JobConfig, EachClassOfFailureHasABudgetOfItsOwn) {
  using Budgets = std::map<std::string, std::uint32_t>;
  const auto plain = load_text(kJob, "j");
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->failure.budgets, (Budgets{{"program", 3},
                                             {"oom", 2},
                                             {"signal", 10},
                                             {"hang", 5},
                                             {"host", 10},
                                             {"device", 10},
                                             {"collective", 10}}));
  EXPECT_EQ(plain->failure.budget_refill, std::chrono::minutes(10));
  EXPECT_EQ(plain->failure.hang_after, std::chrono::seconds(120));

  const auto config = load_text(
      kJob + "[failure]\nbudget_refill = \"90s\"\nbudgets = { oom = 0, collective = 4 }\n", "j");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->failure.budgets.at("oom"), 0U);
  EXPECT_EQ(config->failure.budgets.at("collective"), 4U);
  EXPECT_EQ(config->failure.budgets.at("signal"), 10U);
  EXPECT_EQ(config->failure.budget_refill, std::chrono::seconds(90));
}

TEST(JobConfig, ABudgetForAnUnknownClassIsRefusedWithTheClasses) {
  EXPECT_EQ(problems_of(kJob + "[failure.budgets]\nworkers = 2\n"),
            "job.toml:13:1: failure.budgets.workers: unknown class of failure: the classes are "
            "program, oom, signal, hang, host, device, collective");
}

TEST(JobConfig, AProgramThatCannotJoinAGroupIsNotRestartedAlone) {
  EXPECT_THAT(problems_of(replaced(kJob, "count = 4",
                                   "count = 4\nprotocol = \"torchrun\"\nrestart = \"member\"")),
              HasSubstr("job.toml:8:1: roles.worker.restart: 'member' needs a program that joins"));
  for (const std::string restart : {"gang", "never"}) {
    const auto config = load_text(
        "schema = 1\n[job]\nname = \"ddp\"\n[roles.worker]\ncount = 2\nprotocol = \"exec\"\n"
        "restart = \"" +
            restart + "\"\n",
        "j");
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->roles.worker.restart, restart);
  }
}

TEST(JobConfig, WhereAllWorkersStartTogetherNoneMayBeRestartedByItself) {
  const std::string allow = "[control]\nallow = [\"kill-restart\"]\n";
  EXPECT_EQ(problems_of(kJob + allow), "");
  const std::string gang = replaced(kJob, "count = 4", "count = 4\nrestart = \"gang\"");
  EXPECT_EQ(problems_of(gang), "");
  EXPECT_THAT(problems_of(gang + allow), HasSubstr("control.allow: \"kill-restart\" starts one"));
  EXPECT_EQ(problems_of(kServersJob + allow), "");
}

TEST(JobConfig, AProgramOfAnotherProtocolNeedsNoDataAndRestartsAsAGang) {
  const auto config = load_text(
      "schema = 1\n[job]\nname = \"ddp\"\n[roles.worker]\ncount = 2\nprotocol = \"torchrun\"\n",
      "/some/where/job.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->data.format, "none");
  EXPECT_EQ(config->roles.worker.restart, "gang");
  EXPECT_EQ(config->job.directory, "/some/where");
}

TEST(JobConfig, TheBuiltInProtocolNeedsAFormat) {
  EXPECT_THAT(problems_of(replaced(replaced(kJob, "format = \"index\"", ""), "records = 1000", "")),
              HasSubstr("job.toml:7:2: data.format: is missing: \"criteo\""));
}

TEST(JobConfig, KeysOfAnotherFormatAreRefused) {
  EXPECT_THAT(problems_of(kJob + "[[data.columns]]\nname = \"a\"\nkind = \"label\"\n"),
              HasSubstr("data.columns: is for format \"csv\", not \"index\": remove it"));
}

TEST(JobConfig, TheModelTallyTakesNumbersAndHasNoOptimizer) {
  const auto config = load_text(kJob + "[trainer]\nmodel = \"tally\"\n", "j");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->trainer.model, "tally");
  EXPECT_THAT(
      problems_of(kJob + "[trainer]\nmodel = \"tally\"\noptimizer = \"sgd\"\nmomentum = 0.9\n"),
      "job.toml:15:1: trainer.momentum: is for models that have an optimizer, which 'tally' has "
      "not: remove it");
  EXPECT_THAT(problems_of(kJob + "[trainer]\nmodel = \"tally\"\nweight_decay = 0.1\n"),
              HasSubstr("job.toml:14:1: trainer.weight_decay: is for models that have"));
}

TEST(JobConfig, AMistakeInAListOfTablesIsNamedWithItsPlace) {
  EXPECT_EQ(problems_of(kJob + "[[inject]]\nworkers = [\"w1\"]\nslow = 3.0\n"),
            "job.toml:14:1: inject[0].slow: unknown key: did you mean 'slowdown'?");
}

class JobFiles : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text = "0\n") {
    ASSERT_TRUE(write_file_atomic(dir_ / name, text));
  }
  std::string with_paths(const std::string& paths) {
    return replaced(replaced(kJob, "\"index\"", "\"criteo\""), "records = 1000",
                    "paths = " + paths);
  }
  TempDir dir_;
};

TEST_F(JobFiles, GlobsAreExpandedSortedAndRelativeToTheJobFile) {
  write("b.tsv");
  write("a.tsv");
  write("c.csv");
  const auto config = load_text(with_paths("[\"*.tsv\", \"c.csv\"]"), dir_ / "job.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->data.paths, ElementsAre(dir_ / "a.tsv", dir_ / "b.tsv", dir_ / "c.csv"));
}

TEST_F(JobFiles, TheModelTallyIsRefusedForOtherData) {
  write("a.tsv");
  const std::string path = dir_ / "job.toml";
  const auto config = load_text(with_paths("[\"a.tsv\"]") + "[trainer]\nmodel = \"tally\"\n", path);
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message,
            path +
                ":13:1: trainer.model: 'tally' counts records that are their own number: it "
                "needs format \"index\", not \"criteo\"");
}

TEST_F(JobFiles, AModelWithInteractionsNeedsALayerForThem) {
  write("a.tsv");
  const std::string job = with_paths("[\"a.tsv\"]") + "[trainer]\nmodel = \"xdeepfm\"\n";
  const auto config = load_text(job, dir_ / "job.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->trainer.cin_layers, ElementsAre(32U, 32U));
  const auto without = load_text(job + "cin_layers = []\n", dir_ / "job.toml");
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, HasSubstr(":14:1: trainer.cin_layers: is empty"));
}

TEST_F(JobFiles, AFileThatIsNotThereIsNamedWithItsPlace) {
  const std::string path = dir_ / "job.toml";
  const auto missing = load_text(with_paths("[\"nope.tsv\"]"), path);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, path + ":9:1: data.paths[0]: '" + (dir_ / "nope.tsv") +
                                         "' cannot be read: No such file or directory");
  const auto no_match = load_text(with_paths("[\"*.tsv\"]"), path);
  ASSERT_FALSE(no_match);
  EXPECT_THAT(no_match.error().message, HasSubstr("no file matches '" + (dir_ / "*.tsv")));
}

TEST_F(JobFiles, AFileThatIsListedTwiceIsRefused) {
  write("a.tsv");
  const auto config = load_text(with_paths("[\"*.tsv\", \"a.tsv\"]"), dir_ / "job.toml");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("data.paths[1]: "));
  EXPECT_THAT(config.error().message, HasSubstr("is listed twice"));
}

TEST_F(JobFiles, ADirectoryInPlaceOfAFileIsRefusedWithTheWayOut) {
  ASSERT_TRUE(make_directories(dir_ / "train"));
  const auto config = load_text(with_paths("[\"train\"]"), dir_ / "job.toml");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("is a directory: write '" + (dir_ / "train/*")));
}

TEST_F(JobFiles, TheEffectiveConfigurationReadsBackTheSame) {
  write("a.tsv");
  std::string text = with_paths("[\"a.tsv\"]") +
                     "[[inject]]\nworkers = [\"*\"]\ndelay = \"3ms\"\n[roles.worker.env]\n"
                     "\"A B\" = \"quote \\\" and \\u007f\"\n";
  text = replaced(text, "count = 4", "count = { min = 2, max = 3 }");
  const auto config = load_text(text, dir_ / "job.toml");
  ASSERT_TRUE(config) << config.error().message;

  const auto by_json = from_json(to_json(*config));
  ASSERT_TRUE(by_json) << by_json.error().message;
  EXPECT_EQ(to_json(*by_json), to_json(*config));
  const auto by_toml = load_text(to_toml(*config), dir_ / "effective.toml");
  ASSERT_TRUE(by_toml) << by_toml.error().message;
  EXPECT_EQ(to_json(*by_toml), to_json(*config));

  write("job.json", to_json(*config));
  const auto effective = load_effective(dir_.path());
  ASSERT_TRUE(effective) << effective.error().message;
  EXPECT_EQ(to_json(*effective), to_json(*config));
}

constexpr const char* kOwnProgram =
    "command = [\"./own\"]\n[user]\ndepth = 3\nrate = 0.5\nwidths = [64, 32]\n"
    "\"a name\" = \"x\"\ndeep = [[1.0], [2.5]]\non = true\n";

TEST(JobConfig, OptionsOfTheProgramAreHandedOnAsTheyAreWritten) {
  const std::string text = replaced(kJob, "[data]", std::string(kOwnProgram) + "[data]");
  const auto config = load_text(text, "job.toml", {"user.depth=4", "user.path=a/b"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->user.dump(),
            R"({"a name":"x","deep":[[1.0],[2.5]],"depth":4,"on":true,"path":"a/b","rate":0.5,)"
            R"("widths":[64,32]})");
  const auto again = load_text(to_toml(*config), "effective.toml");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_json(*again), to_json(*config));
  EXPECT_EQ(from_json(to_json(*config))->user, config->user);
}

TEST(JobConfig, AnOptionThatIsNoValueIsNamedWithItsPlace) {
  const std::string text = replaced(kJob, "[data]", std::string(kOwnProgram) + "[data]");
  EXPECT_EQ(problems_of(replaced(text, "depth = 3", "depth = { a = 1 }")),
            "job.toml:9:1: user.depth: must be a string, a number, true or false, or a list of "
            "these, not a table");
  EXPECT_EQ(problems_of(replaced(text, "rate = 0.5", "rate = nan")),
            "job.toml:10:1: user.rate: must be a finite number");
}

TEST(JobConfig, AntdtTrainerHasNoOptionsOfItsOwnAndNoOtherNames) {
  EXPECT_THAT(problems_of(kJob + "[user]\ndepth = 3\n"),
              testing::StartsWith("job.toml:12:2: user: is for a program of one's own"));
  EXPECT_THAT(problems_of(kJob + "[trainer]\nreader = \"mine\"\n"),
              testing::StartsWith("job.toml:13:1: trainer.reader: there is no 'mine' but in"));
  EXPECT_THAT(problems_of(kJob + "[trainer]\nmodel = \"mlpp\"\n"),
              HasSubstr("trainer.model: 'mlpp' is none of \"lr\""));
}

TEST(JobConfig, AProgramOfOnesOwnMayHaveOtherNames) {
  const std::string own = replaced(kJob, "[data]", "command = [\"./own\"]\n[data]");
  EXPECT_EQ(problems_of(own + "[trainer]\nmodel = \"mine\"\noptimizer = \"lion\"\n"), "");
}

TEST(JobConfig, AConfigurationMadeInCodeCanBeWrittenWhateverItLeavesOut) {
  const JobConfig empty;
  EXPECT_THAT(to_toml(empty), HasSubstr("[failure]"));
  EXPECT_TRUE(from_json(to_json(empty)));
}

TEST(JobConfig, AnEffectiveConfigurationThatMissesWhatHasNoDefaultIsRefused) {
  const auto config = load_text(kJob, "job.toml");
  ASSERT_TRUE(config);
  auto json = nlohmann::json::parse(to_json(*config));
  json["job"].erase("name");
  const auto cut = from_json(json.dump());
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message, HasSubstr("job.name is missing"));
  EXPECT_FALSE(from_json("{"));
}

}  // namespace
}  // namespace antdt::launcher
