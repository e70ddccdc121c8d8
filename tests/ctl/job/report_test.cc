#include "ctl/job/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace antdt::ctl {
namespace {

using nlohmann::json;

JobReport example() {
  JobReport r;
  r.job = "ctr-01";
  r.state = JobState::kDone;
  r.generation = Generation{1};
  r.epochs = 2;
  r.samples_total = 1600;
  r.samples_done = 1600;
  r.samples_per_second = 800;
  WorkerReport w;
  w.worker = WorkerId{'w', 0};
  w.host = "a";
  w.rank = 0;
  w.time.compute = 3;
  w.time.collective_wait = 1;
  r.workers = {w, w};
  r.workers[1].worker.index = 1;
  r.workers[1].rank.reset();
  r.totals.once = 1600;
  EpochReport e{0.5, 800, 1.0, EpochReport::Eval{0.75, 0.48, std::nullopt, 200, {{"hits", 150}}}};
  r.epoch_reports = {e, e};
  r.actions = {{1, 1.5, "adjust-batch", "w1", "it is slow", "applied"}};
  return r;
}

TEST(SummaryTest, HasTheFieldsOtherToolsCallFor) {
  const json s = json::parse(summary_json(example()));
  for (const char* key :
       {"schema", "state", "wall_seconds", "samples_total", "samples_trained", "samples_repeated",
        "samples_lost", "samples_skipped", "samples_unaccounted", "samples_per_second", "epochs",
        "actions", "exit", "workers", "lost_time"}) {
    EXPECT_TRUE(s.contains(key)) << key;
  }
  EXPECT_EQ(s["samples_trained"], 1600);
  EXPECT_EQ(s["epochs"][1]["eval"]["auc"], 0.75);
  EXPECT_EQ(s["epochs"][1]["eval"]["sums"], nlohmann::json({{"hits", 150.0}}));
  EXPECT_FALSE(s["epochs"][1]["eval"].contains("accuracy")) << "what was not measured is not there";
  EXPECT_EQ(s["actions"][0]["target"], "w1");
  EXPECT_EQ(s["exit"]["code"], 0);
}

TEST(StatusTest, AHostIsKnownByItsNameAndByTheEndPointOfItsAgent) {
  JobReport r = example();
  r.hosts = {{"a", "10.0.0.7:7700", 2, true}};
  const json hosts = json::parse(status_json(r))["hosts"];
  ASSERT_EQ(hosts.size(), 1U);
  EXPECT_EQ(hosts[0]["name"], "a");
  EXPECT_EQ(hosts[0]["agent"], "10.0.0.7:7700");
}

TEST(SummaryTest, WhatTheProgramSkippedIsThereByReason) {
  JobReport r = example();
  EXPECT_FALSE(json::parse(summary_json(r)).contains("skipped_by_program"));
  r.totals.skipped = 7;
  r.totals.skipped_by_program = {{"torn", 5}, {"too long", 2}};
  for (const std::string& text : {summary_json(r), status_json(r)}) {
    const json skipped = json::parse(text)["skipped_by_program"];
    ASSERT_EQ(skipped.size(), 2U);
    EXPECT_EQ(skipped[1]["reason"], "torn");
    EXPECT_EQ(skipped[1]["samples"], 5);
  }
}

TEST(SummaryTest, FailuresAndActionsAreCountedAlsoWhereTheyAreNotListed) {
  JobReport r = example();
  for (int i = 0; i < 150; ++i) {
    r.failures.push_back({1.0 * i, WorkerId{'w', 1}, Attempt{1}, "a", 0, "it was killed", 1, {}});
    r.actions.push_back({2U + i, 1.0 * i, "adjust-batch", "w1", "it is slow", "applied"});
  }
  r.failures_before = 2000;
  const json summary = json::parse(summary_json(r));
  EXPECT_EQ(summary["failures"].size(), 150U);
  EXPECT_EQ(summary["failures_count"], 2150);
  EXPECT_EQ(summary["actions_count"], 151);
  const json status = json::parse(status_json(r));
  EXPECT_EQ(status["failures"].size(), 100U);
  EXPECT_EQ(status["failures_count"], 2150);
  EXPECT_EQ(status["actions"].back()["number"], 151);
  EXPECT_EQ(status["actions_count"], 151);
}

// The last lines of a worker's error output are bytes, and may begin inside a character.
TEST(SummaryTest, InvalidUtf8InACauseIsReplaced) {
  JobReport r = example();
  r.outcome = Outcome{JobEnd::kFailed, 1, ExitClass::kProgram, false, "w1 said \xbc and left"};
  r.failures = {{1, WorkerId{'w', 1}, Attempt{1}, "a", 0, "w1 said \xbc and left", 1, {}}};
  EXPECT_EQ(json::parse(summary_json(r))["exit"]["first_cause"], "w1 said \uFFFD and left");
  EXPECT_TRUE(json::accept(status_json(r)));
}

TEST(StatusTest, AVerdictIsThereForPeopleAndItsPartsForPrograms) {
  JobReport r = example();
  r.workers[0].judged = r.workers[1].judged = true;
  r.workers[1].verdict = {VerdictKind::kTransient, 3, Cause::kThrottled, "held back", {}};
  const json workers = json::parse(status_json(r))["workers"];
  EXPECT_EQ(workers[0]["verdict"], "ok");
  EXPECT_TRUE(workers[0]["straggler"].is_null());
  EXPECT_EQ(workers[1]["verdict"], "transient straggler, 3.0x slower (throttled)");
  EXPECT_EQ(workers[1]["straggler"]["cause"], "throttled");
  EXPECT_EQ(workers[1]["straggler"]["kind"], "transient");
  EXPECT_EQ(workers[1]["straggler"]["severity"], 3.0);
  EXPECT_EQ(workers[1]["straggler"]["seen"], "held back");
}

TEST(SummaryTest, ServersAreListedAndTheirPushesAddedUp) {
  JobReport r = example();
  EXPECT_FALSE(json::parse(summary_json(r)).contains("servers"));
  ServerReport s{WorkerId{'s', 0}, "a", 7, Attempt{1}, ProcessState::kJoined, {}};
  s.said.rows = 10;
  s.said.pushes_applied = 5;
  s.said.staleness_pushes = 4;
  s.said.staleness_sum = 6;
  s.said.staleness_max = 3;
  s.said.cuts = 2;
  s.said.cut_pause_us_sum = 30000;
  s.said.cut_pause_us_max = 20000;
  r.servers = {s, s};
  r.servers[1].server.index = 1;
  r.servers[1].said.staleness_max = 2;
  r.decided_before.pushes_applied = 20;
  r.decided_before.staleness_pushes = 8;
  for (const std::string& text : {summary_json(r), status_json(r)}) {
    const json found = json::parse(text);
    ASSERT_EQ(found["servers"].size(), 2U);
    EXPECT_EQ(found["servers"][1]["id"], "s1");
    EXPECT_EQ(found["servers"][0]["rows"], 10);
    EXPECT_EQ(found["pushes"]["applied"], 30) << "20 of them by servers that ended";
    EXPECT_EQ(found["staleness"]["mean"], 0.75);
    EXPECT_EQ(found["staleness"]["max"], 3);
    EXPECT_EQ(found["servers"][0]["checkpoints"], 2);
    EXPECT_EQ(found["servers"][0]["checkpoint_pause_us_mean"], 15000);
    EXPECT_EQ(found["servers"][0]["checkpoint_pause_us_max"], 20000);
  }
}

TEST(SummaryTest, LostTimeIsTheSumOverWorkers) {
  const json s = json::parse(summary_json(example()));
  EXPECT_EQ(s["lost_time"]["compute"], 6);
  EXPECT_EQ(s["lost_time"]["collective_wait"], 2);
}

TEST(SummaryTest, HowGradientsWereSummedIsThereWhereItIsKnown) {
  JobReport r = example();
  r.collective = "shm (2 members of 1 host)";
  r.workers[1].table_sums = {30, 4};
  for (const std::string& text : {summary_json(r), status_json(r)}) {
    const json found = json::parse(text);
    EXPECT_EQ(found["collective"], "shm (2 members of 1 host)");
    EXPECT_FALSE(found["workers"][0].contains("embedding_steps")) << "it had no choice";
    EXPECT_EQ(found["workers"][1]["embedding_steps"]["rows"], 30);
    EXPECT_EQ(found["workers"][1]["embedding_steps"]["whole_table"], 4);
  }
}

TEST(SummaryTest, WhatWorkersExchangedIsThereOnceItIsKnown) {
  JobReport r = example();
  EXPECT_FALSE(json::parse(summary_json(r)).contains("traffic")) << "nothing is known of it";
  r.traffic = report::Traffic{.gradients_bytes = 300, .hosts = {{"a", "x", "b", "y", 30, 40, 1.5}}};
  for (const std::string& text : {summary_json(r), status_json(r)}) {
    const json traffic = json::parse(text)["traffic"];
    EXPECT_EQ(traffic["gradients_bytes"], 300);
    EXPECT_FALSE(traffic.contains("domains")) << "there are none";
    EXPECT_EQ(traffic["hosts"][0]["from"], "a");
    EXPECT_EQ(traffic["hosts"][0]["to_domain"], "y");
    EXPECT_EQ(traffic["hosts"][0]["received_bytes"], 40);
    EXPECT_EQ(traffic["hosts"][0]["waited_seconds"], 1.5);
  }
}

TEST(StatusTest, AWorkerWithoutARankSaysSo) {
  const json s = json::parse(status_json(example()));
  EXPECT_EQ(s["workers"][0]["rank"], 0);
  EXPECT_TRUE(s["workers"][1]["rank"].is_null());
  EXPECT_EQ(s["last_eval"]["auc"], 0.75);
}

TEST(StatusTest, EtaFollowsFromWhatIsLeft) {
  JobReport r = example();
  r.samples_done = 800;
  EXPECT_EQ(json::parse(status_json(r))["eta_seconds"], 1.0);
}

}  // namespace
}  // namespace antdt::ctl
