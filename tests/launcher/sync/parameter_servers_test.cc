// job.toml of a job whose model is on parameter servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "launcher/config/job_config.h"
#include "tests/launcher/job_text.h"

namespace antdt::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string with_trainer(const std::string& lines) {
  return replaced(kServersJob, "sync = \"ps-bsp\"", "sync = \"ps-bsp\"\n" + lines);
}

TEST(ParameterServers, AJobWithAModelOnServersHasServers) {
  const auto config = load_text(kServersJob, "job.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->trainer.sync, "ps-bsp");
  const RoleSection& server = config->roles.server;
  EXPECT_EQ(server.count, 2U);
  EXPECT_EQ(server.min, 2U);
  EXPECT_EQ(server.max, 2U);
  EXPECT_THAT(server.command, ElementsAre("antdt-server"));
  EXPECT_EQ(server.protocol, "antdt");
  EXPECT_EQ(server.restart, "member");
}

TEST(ParameterServers, AnAllReduceJobHasNone) {
  const auto config = load_text(kJob, "job.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->trainer.sync, "allreduce");
  EXPECT_EQ(config->roles.server.count, 0U);
  EXPECT_EQ(JobConfig().roles.server.count, 0U);
}

TEST(ParameterServers, TheirNumberIsOneNumberOfAtMostOneServerASlice) {
  EXPECT_EQ(problems_of(replaced(kServersJob, "count = 2", "count = { min = 1, max = 2 }")),
            "job.toml:15:1: roles.server.count: must be a whole number, not a table");
  EXPECT_THAT(problems_of(replaced(kServersJob, "count = 2", "count = 65")),
              "job.toml:15:1: roles.server.count: must be at most 64");
  EXPECT_EQ(problems_of(replaced(kServersJob, "count = 2", "count = 64")), "");
}

TEST(ParameterServers, AJobWithServersUnderAllReduceIsToldBothWaysOut) {
  EXPECT_EQ(
      problems_of(kJob + "[roles.server]\ncount = 2\n"),
      "job.toml:13:1: roles.server.count: there is nothing for servers to do under "
      "trainer.sync = \"allreduce\": write sync = \"ps-bsp\" there, or remove [roles.server]");
}

TEST(ParameterServers, AModelOnServersNeedsOneAtLeast) {
  const std::string none = replaced(kServersJob, "[roles.server]\ncount = 2\n", "");
  EXPECT_EQ(problems_of(none),
            "job.toml:13:1: trainer.sync: 'ps-bsp' keeps the model on servers, and the job has "
            "none: add [roles.server] with count = 1 or more, or use \"allreduce\"");
  EXPECT_THAT(problems_of(replaced(kServersJob, "count = 2", "count = 0")),
              HasSubstr("keeps the model on servers, and the job has none"));
}

TEST(ParameterServers, ATableOfServersWithoutTheirNumberIsAnErrorUnderEitherSync) {
  for (const std::string sync : {"allreduce", "ps-bsp"}) {
    EXPECT_THAT(problems_of(kJob + "[trainer]\nsync = \"" + sync +
                            "\"\n[roles.server]\ncommand = [\"antdt-server\"]\n"),
                StartsWith("job.toml:14:8: roles.server.count: is missing: write how many servers"))
        << sync;
  }
}

TEST(ParameterServers, TheirWorkersNeedNotWaitForEachOther) {
  for (const std::string sync : {"ps-ssp", "ps-asp"}) {
    const auto config = load_text(replaced(kServersJob, "ps-bsp", sync), "job.toml");
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->trainer.sync, sync);
    EXPECT_EQ(config->trainer.staleness, 4U);
  }
}

TEST(ParameterServers, HowFarOneMayBeAheadIsForOneSyncOnly) {
  const std::string text = with_trainer("staleness = 2");
  const auto config = load_text(replaced(text, "ps-bsp", "ps-ssp"), "job.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->trainer.staleness, 2U);
  for (const std::string sync : {"ps-bsp", "ps-asp"}) {
    EXPECT_THAT(problems_of(replaced(text, "ps-bsp", sync)),
                HasSubstr("trainer.staleness: is for trainer.sync = \"ps-ssp\", not \"" + sync +
                          "\": remove it"));
  }
}

TEST(ParameterServers, ExchangesAreSetForReplicasOnly) {
  const std::string text = with_trainer("shadow = { every = 3, alpha = 0.25, threads = 2 }");
  const auto config = load_text(replaced(text, "ps-bsp", "shadow-easgd"), "job.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->trainer.shadow.every, 3U);
  EXPECT_EQ(config->trainer.shadow.alpha, 0.25);
  EXPECT_EQ(config->trainer.shadow.threads, 2U);
  for (const std::string sync : {"shadow-ma", "shadow-bmuf"}) {
    EXPECT_TRUE(load_text(replaced(text, "ps-bsp", sync), "job.toml")) << sync;
  }
  for (const std::string sync : {"ps-bsp", "ps-asp"}) {
    const std::string found = problems_of(replaced(text, "ps-bsp", sync));
    for (const std::string key : {"every", "alpha", "threads"}) {
      EXPECT_THAT(found, HasSubstr("trainer.shadow." + key +
                                   ": is for trainer.sync = "
                                   "\"shadow-easgd\", \"shadow-ma\" or \"shadow-bmuf\", not \"" +
                                   sync + "\": remove it"));
    }
  }
}

TEST(ParameterServers, AShareThatDrivesReplicasAndCentreApartIsRefused) {
  const auto with = [](const std::string& alpha, const std::string& count) {
    const std::string text =
        replaced(with_trainer("shadow = { alpha = " + alpha + " }"), "ps-bsp", "shadow-easgd");
    return replaced(text, "[roles.worker]\ncount = 4", "[roles.worker]\ncount = " + count);
  };
  EXPECT_THAT(problems_of(with("0.5", "4")),
              HasSubstr("trainer.shadow.alpha: with 4 workers that exchange at once, 0.5 moves the "
                        "centre farther away from them than it was: it must be below "
                        "2 / (workers + 1) = 0.4, and 0 is 1 / workers"));
  EXPECT_THAT(problems_of(with("0.4", "4")), HasSubstr("trainer.shadow.alpha"));
  EXPECT_TRUE(load_text(with("0.39", "4"), "job.toml"));
  EXPECT_THAT(problems_of(with("0.39", "{ min = 2, max = 8 }")), HasSubstr("= 0.2222"))
      << "the job may grow to 8";
  EXPECT_TRUE(load_text(with("0", "{ min = 2, max = 8 }"), "job.toml"));
  EXPECT_THAT(problems_of(with("1", "1")), HasSubstr("= 1,")) << "both would change places";
}

TEST(ParameterServers, AMeanOfReplicasAllowsEveryShare) {
  for (const std::string sync : {"shadow-ma", "shadow-bmuf"}) {
    const std::string text = replaced(with_trainer("shadow = { alpha = 1 }"), "ps-bsp", sync);
    EXPECT_TRUE(load_text(text, "job.toml")) << sync;
  }
}

TEST(ParameterServers, OnlyAModelThatFollowsTheMeanHasAShareOfTheWay) {
  const auto with = [](const std::string& sync, const std::string& eta) {
    return replaced(with_trainer("shadow = { eta = " + eta + " }"), "ps-bsp", sync);
  };
  const auto config = load_text(with("shadow-bmuf", "0.25"), "job.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->trainer.shadow.eta, 0.25);
  for (const std::string sync : {"shadow-easgd", "shadow-ma", "ps-asp"}) {
    EXPECT_THAT(problems_of(with(sync, "0.25")),
                HasSubstr("trainer.shadow.eta: is for trainer.sync = \"shadow-bmuf\", not \"" +
                          sync + "\": remove it"));
  }
  EXPECT_THAT(problems_of(with("shadow-bmuf", "0")),
              HasSubstr("trainer.shadow.eta: with 0 the model would never follow the workers' "
                        "replicas: write a share above 0, or use trainer.sync = \"shadow-ma\""));
  EXPECT_THAT(problems_of(with("shadow-bmuf", "1.5")), HasSubstr("trainer.shadow.eta"));
}

TEST(ParameterServers, AThreadThatTrainsAReplicaComputesAlone) {
  const std::string text =
      replaced(with_trainer("shadow = { threads = 2 }\nthreads = 4"), "ps-bsp", "shadow-easgd");
  EXPECT_THAT(problems_of(text),
              HasSubstr("trainer.shadow.threads: each of 2 threads computes its part of a batch "
                        "alone, and trainer.threads = 4 would share out the operations of each: "
                        "write trainer.threads = 1, or trainer.shadow.threads = 1"));
  EXPECT_TRUE(load_text(replaced(text, "threads = 2", "threads = 1"), "job.toml"));
}

TEST(ParameterServers, GradientsOfRowsAloneAreAChoiceOfAllReduce) {
  EXPECT_THAT(problems_of(with_trainer("embedding_gradients = \"sparse\"")),
              HasSubstr("trainer.embedding_gradients: is for trainer.sync = \"allreduce\", not "
                        "\"ps-bsp\", under which only rows in a batch travel: remove it"));
  EXPECT_THAT(problems_of(kJob + "[trainer]\nembedding_gradients = \"sparse\"\n"
                                 "optimizer = \"sgd\"\nmomentum = 0.9\n"),
              HasSubstr("goes with no momentum"));
  const auto config = load_text(kJob + "[trainer]\nembedding_gradients = \"sparse\"\n", "job.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->trainer.embedding_gradients, "sparse");
}

TEST(Collective, NcclSumsInTheMemoryOfDevices) {
  EXPECT_THAT(
      problems_of(kJob + "[trainer]\ncollective = \"nccl\"\ndevice = \"cpu\"\n"),
      HasSubstr("NCCL sums in the memory of CUDA devices, and trainer.device = \"cpu\" uses "
                "none: remove one of the two"));
  EXPECT_TRUE(load_text(kJob + "[trainer]\ncollective = \"nccl\"\n", "job.toml"));
}

TEST(Collective, IsForWorkersThatSendEachOtherSomething) {
  const auto with = [](const char* sync) {
    return problems_of(replaced(with_trainer("collective = \"tcp\""), "ps-bsp", std::string(sync)));
  };
  EXPECT_EQ(with("hybrid"), "");
  EXPECT_THAT(with("ps-bsp"), HasSubstr("is for trainer.sync = \"allreduce\", \"ds-sync\", "
                                        "\"gaia\" or \"hybrid\", not \"ps-bsp\", under which "
                                        "workers send each other nothing: remove it"));
}

TEST(ParameterServers, ASyncThatIsNotKnownIsRefused) {
  EXPECT_EQ(problems_of(replaced(kServersJob, "ps-bsp", "ps-bps")),
            "job.toml:13:1: trainer.sync: 'ps-bps' is none of \"allreduce\", \"ps-bsp\", "
            "\"ps-ssp\", \"ps-asp\", \"ds-sync\", \"shadow-easgd\", \"shadow-ma\", "
            "\"shadow-bmuf\", \"gaia\", \"hybrid\", \"auto\" (did you "
            "mean 'ps-bsp'?)");
  EXPECT_EQ(problems_of(replaced(kServersJob, "ps-bsp", "gossip")),
            "job.toml:13:1: trainer.sync: 'gossip' is none of \"allreduce\", \"ps-bsp\", "
            "\"ps-ssp\", \"ps-asp\", \"ds-sync\", \"shadow-easgd\", \"shadow-ma\", "
            "\"shadow-bmuf\", \"gaia\", \"hybrid\", \"auto\"");
}

TEST(ParameterServers, APlannedSyncMayHaveServersOrNot) {
  for (const std::string& text :
       {replaced(kServersJob, "ps-bsp", "auto"), kJob + "[trainer]\nsync = \"auto\"\n"}) {
    const auto config = load_text(text, "job.toml");
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->trainer.sync, "auto");
  }
}

TEST(ParameterServers, AStepMayGoOnWithoutSomeWorkersButNotWithoutAll) {
  const auto config = load_text(with_trainer("backup_workers = 1"), "job.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->trainer.backup_workers, 1U);
  EXPECT_THAT(problems_of(with_trainer("backup_workers = 9")),
              HasSubstr("leaves none whose push makes a step: use fewer"));
  EXPECT_THAT(problems_of(kJob + "[trainer]\nbackup_workers = 1\n"),
              HasSubstr("is for trainer.sync = \"ps-bsp\", not \"allreduce\": remove it"));
}

TEST(ParameterServers, WorkersOfAnotherProtocolAreRefused) {
  const std::string text = replaced(kServersJob, "count = 4", "count = 4\nprotocol = \"torchrun\"");
  EXPECT_EQ(problems_of(text),
            "job.toml:7:1: roles.worker.protocol: a program of protocol 'torchrun' knows nothing "
            "of parameter servers: use \"antdt\", or trainer.sync = \"allreduce\"");
}

TEST(ParameterServers, WorkersAreStartedAgainAloneOrNever) {
  EXPECT_THAT(problems_of(replaced(kServersJob, "count = 4", "count = 4\nrestart = \"gang\"")),
              StartsWith("job.toml:7:1: roles.worker.restart: 'gang' is for workers that cannot"));
  const auto never =
      load_text(replaced(kServersJob, "count = 4", "count = 4\nrestart = \"never\""), "job.toml");
  ASSERT_TRUE(never) << never.error().message;
  EXPECT_EQ(never->roles.server.restart, "never");
}

TEST(ParameterServers, RunOnSeveralHostsToo) {
  const auto config = load_text(
      kServersJob + "[cluster]\nhosts = [\"a:7700\", \"b:7700\"]\nports = \"29400-29499\"\n",
      "job.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->cluster.hosts.size(), 2U);
}

TEST(ParameterServers, ADeliveryOtherThanExactlyOnceIsRefusedWithTheirReason) {
  EXPECT_EQ(problems_of(replaced(kServersJob, "records = 1000",
                                 "records = 1000\ndelivery = \"at-most-once\"") +
                        "[control]\nsolution = \"none\"\n"),
            "job.toml:10:1: data.delivery: 'at-most-once' is refused under sync = \"ps-bsp\": a "
            "step counts once on all servers or on none, so exactly-once costs nothing there; "
            "remove the line, or set trainer.backup_workers: then pushes may come too late, and "
            "their records are dropped");
}

TEST(ParameterServers, LatePushesOfBackupWorkersMayBeDropped) {
  for (const std::string more : {"[trainer]\nbackup_workers = 1", "[control]\nsolution = \"nd\""}) {
    const std::string text =
        replaced(kServersJob, "records = 1000", "records = 1000\ndelivery = \"at-most-once\"");
    const bool in_trainer = more.starts_with("[trainer]");
    const auto config =
        load_text(in_trainer ? replaced(text, "[trainer]", more) : text + more + "\n", "job.toml");
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->data.delivery, "at-most-once");
  }
}

TEST(ParameterServers, WhereNobodyWaitsForAStepTheDeliveryCanBeChosen) {
  for (const std::string sync : {"ps-ssp", "ps-asp"}) {
    for (const std::string delivery : {"at-least-once", "at-most-once"}) {
      const std::string text =
          replaced(replaced(kServersJob, "records = 1000",
                            fmt::format("records = 1000\ndelivery = \"{}\"", delivery)),
                   "ps-bsp", sync);
      const auto config = load_text(text, "job.toml");
      ASSERT_TRUE(config) << config.error().message;
      EXPECT_EQ(config->data.delivery, delivery);
      EXPECT_EQ(problems_of(replaced(text, "count = 2", "count = 2\nreplicas = 2")),
                fmt::format("job.toml:10:1: data.delivery: '{}' is refused with replicas = 2: a "
                            "lost process of a server loses nothing there, so exactly-once costs "
                            "nothing; remove the line",
                            delivery));
    }
  }
}

TEST(ParameterServers, TheirEnvironmentIsCheckedLikeThatOfWorkers) {
  EXPECT_EQ(problems_of(kServersJob + "env = { ANTDT_SOCKET = \"x\" }\ncommand = []\n"),
            "job.toml:17:1: roles.server.command: must name a program\n"
            "job.toml:16:1: roles.server.env.ANTDT_SOCKET: is set by antdt itself: choose another "
            "name");
}

TEST(ParameterServers, TheyKeepNoMomentum) {
  EXPECT_EQ(
      problems_of(with_trainer("optimizer = \"sgd\"\nmomentum = 0.9")),
      "job.toml:15:1: trainer.momentum: is not for trainer.sync = \"ps-bsp\": servers keep no "
      "momentum; remove it, or use \"allreduce\"");
  EXPECT_EQ(problems_of(with_trainer("optimizer = \"sgd\"\nweight_decay = 0.1")), "");
}

TEST(ParameterServers, TheModelWithThreeCountersIsOnlyForServers) {
  const auto config = load_text(with_trainer("model = \"tally3\""), "job.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->trainer.model, "tally3");
  EXPECT_EQ(problems_of(with_trainer("model = \"tally\"")), "");
  EXPECT_EQ(problems_of(kJob + "[trainer]\nmodel = \"tally3\"\n"),
            "job.toml:13:1: trainer.model: 'tally3' shows whether a record's counters on several "
            "servers agree: it needs trainer.sync = \"ps-bsp\"; with \"allreduce\" use 'tally'");
  EXPECT_THAT(problems_of(with_trainer("model = \"tally3\"\nweight_decay = 0.1")),
              HasSubstr("job.toml:15:1: trainer.weight_decay: is for models that have an "
                        "optimizer, which 'tally3' has not"));
}

class ParameterServerFiles : public testing::Test {
 protected:
  // The problems of a job on servers with this model, on data of this format.
  std::string problems_with(const std::string& model, const std::string& data) {
    EXPECT_TRUE(write_file_atomic(dir_ / "a", "0\n"));
    const auto config = load_text(replaced(with_trainer("model = \"" + model + "\""),
                                           "format = \"index\"\nrecords = 1000", data),
                                  dir_ / "job.toml");
    return config ? "" : config.error().message;
  }
  TempDir dir_;
};

TEST_F(ParameterServerFiles, TakeTheModelsForClicksAndThePerceptron) {
  const std::string clicks = "format = \"criteo\"\npaths = [\"a\"]";
  const std::string images = "format = \"idx\"\npaths = [\"a\"]\nlabels = [\"a\"]";
  for (const std::string model : {"lr", "deepfm", "xdeepfm", "dlrm", "mlp"}) {
    EXPECT_EQ(problems_with(model, clicks), "") << model;
  }
  EXPECT_EQ(problems_with("mlp", images), "");
  EXPECT_THAT(problems_with("resnet", images),
              HasSubstr(": trainer.model: 'resnet' is not for parameter servers: all of its"));
}

TEST_F(ParameterServerFiles, ThatAModelWithThreeCountersCannotReadAreRefused) {
  EXPECT_THAT(problems_with("tally3", "format = \"criteo\"\npaths = [\"a\"]"),
              HasSubstr("'tally3' counts records that are their own number: it needs format "
                        "\"index\", not \"criteo\""));
}

TEST(ParameterServers, TheEffectiveConfigurationReadsBackTheSame) {
  const std::string text = kServersJob +
                           "resources = { cpus = 0.5, memory = \"1GiB\" }\n"
                           "command = [\"my-server\", \"--fast\"]\nenv = { A = \"b\" }\n";
  for (const std::string& each : {text, kJob}) {
    const auto config = load_text(each, "/x/job.toml");
    ASSERT_TRUE(config) << config.error().message;
    const auto by_json = from_json(to_json(*config));
    ASSERT_TRUE(by_json) << by_json.error().message;
    EXPECT_EQ(to_json(*by_json), to_json(*config));
    const auto by_toml = load_text(to_toml(*config), "/x/effective.toml");
    ASSERT_TRUE(by_toml) << by_toml.error().message;
    EXPECT_EQ(to_json(*by_toml), to_json(*config));
  }
  const auto config = from_json(to_json(load_text(text, "/x/job.toml").value()));
  EXPECT_EQ(config->roles.server.count, 2U);
  EXPECT_EQ(config->roles.server.resources.memory_bytes, 1ULL << 30);
  EXPECT_THAT(config->roles.server.command, ElementsAre("my-server", "--fast"));
  EXPECT_EQ(config->roles.server.env.at("A"), "b");
}

TEST(ParameterServers, TheExampleIsAJob) {
  const auto config = load(ANTDT_SOURCE_DIR "/examples/tally-ps/job.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->roles.server.count, 2U);
}

TEST(ParameterServers, AnOverrideCanGiveAJobServers) {
  EXPECT_EQ(problems_of(kJob, {"trainer.sync=ps-bsp", "roles.server.count=3"}), "");
  EXPECT_THAT(problems_of(kJob, {"roles.server.count=3"}),
              StartsWith("--set roles.server.count=3: roles.server.count: there is nothing"));
}

}  // namespace
}  // namespace antdt::launcher
