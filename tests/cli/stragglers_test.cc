// The matrix of `antdt bench stragglers`: its jobs match the situations from which their ideals are
// computed, and its lines contain what was measured.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/stragglers/result.h"
#include "core/drill/drill_json.h"
#include "core/report/job_report.h"
#include "core/report/json.h"
#include "launcher/config/job_config.h"
#include "sim/fleet/drill_speeds.h"

namespace antdt::stragglers {
namespace {

fleet::DrillSpeeds speeds_of(const Situation& s) {
  auto speeds = fleet::DrillSpeeds::make(s.emulation, s.rules, {}, s.workers,
                                         std::vector<std::string>(s.workers, "here"), 5);
  EXPECT_TRUE(speeds) << speeds.error().message;
  return std::move(*speeds);
}

Cell cell_of(const std::string& situation, const std::string& solution) {
  auto cells = matrix({true, {situation}, {solution}, ""});
  EXPECT_TRUE(cells && cells->size() == 1);
  return std::move(cells->front());
}

std::string summary(double seconds, std::uint64_t samples) {
  report::Summary s;
  s.training_seconds = seconds;
  s.samples_total = samples;
  s.samples_repeated = 2;
  s.samples_lost = 1;
  s.actions = {{.outcome = "applied"}, {.outcome = "advised"}};
  return report::json_of(s).dump();
}

Measured run_of(const Cell& cell, double seconds, std::uint64_t samples) {
  auto m = measured(cell, speeds_of(cell.situation), summary(seconds, samples));
  EXPECT_TRUE(m) << m.error().message;
  return std::move(m).value_or(Measured{});
}

class StragglersTest : public testing::Test {
 protected:
  std::string directory_ = std::filesystem::path(testing::TempDir()).parent_path();
};

TEST_F(StragglersTest, EachJobIsTheSituationThatItsIdealIsCountedFor) {
  for (const int job : {1, 2, 4}) {
    std::ofstream(directory_ + "/job_" + std::to_string(job) + "_norm.csv")
        << "worker,time,batch_time_norm\n0,0,1\n";
  }
  for (const bool quick : {false, true}) {
    const auto cells = matrix({quick, {}, {}, directory_});
    ASSERT_TRUE(cells) << cells.error().message;
    for (const Cell& cell : *cells) {
      if (!cell.not_run.empty()) continue;
      SCOPED_TRACE(cell.situation.name + " " + cell.solution);
      const std::string text = job_toml(cell, windows_of({quick, {}, {}, ""}), 512'000, 9);
      const auto config = launcher::load_text(text, directory_ + "/job.toml");
      ASSERT_TRUE(config) << config.error().message;
      const std::string json = launcher::to_json(*config);
      EXPECT_EQ(drill::parse_rules(json).value(), cell.situation.rules);
      const auto emulation = drill::parse_emulation(json).value();
      EXPECT_EQ(emulation.devices, cell.situation.emulation.devices);
      EXPECT_EQ(emulation.noise, cell.situation.emulation.noise);
      EXPECT_EQ(config->roles.worker.count, cell.situation.workers);
      EXPECT_EQ(config->batch.global, cell.situation.global_batch);
      EXPECT_EQ(config->trainer.sync, cell.situation.sync);
      EXPECT_EQ(config->control.solution + (config->control.share_steps ? "+share" : ""),
                cell.solution);
      EXPECT_EQ(config->job.seed, 9);
      if (cell.situation.sync != "allreduce") {
        EXPECT_EQ(config->roles.server.count, cell.situation.servers);
      }
    }
  }
}

TEST_F(StragglersTest, AllSolutionsMeetAllSituationsAndWhatCannotBeRunSaysWhy) {
  const auto cells = matrix({});
  ASSERT_TRUE(cells) << cells.error().message;
  std::set<std::string> names, solutions;
  for (const Cell& cell : *cells) {
    names.insert(cell.situation.name);
    solutions.insert(cell.solution);
    const bool needs_traces = cell.situation.name.starts_with("pai-");
    if (needs_traces) {
      EXPECT_NE(cell.not_run.find("--traces"), std::string::npos);
    }
    if (cell.solution == "backup-workers" && cell.situation.sync == "allreduce") {
      EXPECT_FALSE(cell.not_run.empty()) << cell.situation.name;
    }
  }
  EXPECT_EQ(solutions, (std::set<std::string>{"none", "dds", "backup-workers", "lb-bsp", "nd", "dd",
                                              "none+share", "nd+share", "dd+share"}));
  EXPECT_EQ(cells->size(), names.size() * solutions.size());
}

TEST_F(StragglersTest, ASolutionNamedTwiceRunsOnce) {
  const auto cells = matrix({true, {"mix", "mix"}, {"nd", "none", "nd"}, ""});
  ASSERT_TRUE(cells) << cells.error().message;
  ASSERT_EQ(cells->size(), 2U);
  EXPECT_EQ(cells->at(0).solution, "nd");
  EXPECT_EQ(cells->at(1).solution, "none");
}

TEST_F(StragglersTest, AnUnknownNameIsAnErrorThatListsTheExistingOnes) {
  const auto situation = matrix({true, {"storm"}, {}, ""});
  ASSERT_FALSE(situation);
  EXPECT_NE(situation.error().message.find("'storm' is no situation"), std::string::npos);
  EXPECT_NE(situation.error().message.find("three-classes"), std::string::npos);
  const auto solution = matrix({true, {}, {"magic"}, ""});
  ASSERT_FALSE(solution);
  EXPECT_NE(solution.error().message.find("'magic' is no solution"), std::string::npos);
}

TEST_F(StragglersTest, AJobIsAsLongAsTwentyPersistentWindowsAtLeast) {
  const Duration least = least_job(windows_of({true, {}, {}, ""}));
  EXPECT_EQ(least, std::chrono::seconds(100));
  // With equal parts of 32 samples, the worker at 1/8 takes 512 ms, and the collective 1.6 ms.
  const Cell none = cell_of("mix", "none");
  EXPECT_EQ(records_for(none, speeds_of(none.situation), least), 195 * 256);
  // Meanwhile all others could train seven times as much.
  const Cell nd = cell_of("mix", "nd");
  const std::uint64_t more = records_for(nd, speeds_of(nd.situation), least);
  EXPECT_GT(more, 6.5 * 195 * 256);
  EXPECT_LT(more, 7.2 * 195 * 256);
  // Two micro-batches that fit, because one would not.
  const Cell classes = cell_of("three-classes", "none");
  EXPECT_EQ(records_for(classes, speeds_of(classes.situation), least), 389 * 512);
}

TEST_F(StragglersTest, BackupWorkersDoNotWaitForTheSlowest) {
  const Cell cell = cell_of("mix-ps", "backup-workers");
  const std::uint64_t steps =
      records_for(cell, speeds_of(cell.situation), std::chrono::seconds(100)) / 256;
  // A step takes 64 ms, or 192 ms while w1 or w2 is slow, which is two fifths of the time at most.
  EXPECT_GT(steps, 1000);
  EXPECT_LT(steps, 1516);
}

TEST_F(StragglersTest, ALineSaysWhatWasMeasuredBesideItsIdeal) {
  const Cell cell = cell_of("persistent", "nd");
  const auto steps = 1000;
  const Measured m = run_of(cell, 80, steps * 256);
  // Seven workers at full speed and one at a third: 256 samples in 256 * 2 ms / (7 + 1/3), and 1.6
  // ms.
  EXPECT_NEAR(m.line.ideal_seconds, steps * (0.512 / (7 + 1.0 / 3) + 0.0016), 0.1);
  EXPECT_NEAR(m.line.share_of_ideal(), m.line.ideal_seconds / 80, 1e-9);
  EXPECT_EQ(m.line.actions, 1U);
  EXPECT_EQ(m.line.records_repeated, 2U);
  EXPECT_EQ(m.line.records_lost, 1U);
  EXPECT_FALSE(measured(cell, speeds_of(cell.situation), "{}"));
  EXPECT_FALSE(measured(cell, speeds_of(cell.situation), "torn"));
}

TEST_F(StragglersTest, SpeedsAreComparedWhereJobsDifferInLength) {
  const Cell none = cell_of("mix", "none");
  const Cell nd = cell_of("mix", "nd");
  std::vector<Line> lines = {line_of(none, {run_of(none, 100, 25'600)}, ""),
                             line_of(nd, {run_of(nd, 50, 51'200)}, ""),
                             line_of(cell_of("persistent", "nd"), {run_of(nd, 50, 2000)}, "")};
  compare_with_none(lines);
  EXPECT_DOUBLE_EQ(lines[0].speedup_over_none.value_or(0), 1);
  // Twice as many samples in half of the time; it makes little difference when which worker is
  // slow.
  EXPECT_NEAR(lines[1].speedup_over_none.value_or(0), 4, 0.4);
  EXPECT_FALSE(lines[2].speedup_over_none);  // none was not run in this situation
}

TEST_F(StragglersTest, TheMedianRunIsReportedWithTheSpread) {
  const Cell nd = cell_of("persistent", "nd");
  std::vector<Line> lines = {line_of(
      nd, {run_of(nd, 90, 256'000), run_of(nd, 80, 256'000), run_of(nd, 100, 256'000)}, "")};
  EXPECT_DOUBLE_EQ(lines[0].middle().line.job_seconds, 90);
  const auto json = nlohmann::json::parse(to_json(lines)).at(0);
  EXPECT_DOUBLE_EQ(json.at("job_seconds"), 90);
  EXPECT_EQ(json.at("runs"), 3);
  EXPECT_LT(json.at("least_share_of_ideal"), json.at("share_of_ideal"));
  EXPECT_GT(json.at("most_share_of_ideal"), json.at("share_of_ideal"));
  EXPECT_NE(table(lines).at(1).find("0.794 (0.714-0.893)"), std::string::npos) << table(lines)[1];
}

TEST_F(StragglersTest, ASituationOfSeveralHostsIsAJobOfThese) {
  const Cell cell = cell_of("slow-server", "nd");
  EXPECT_EQ(cell.not_run, "");
  const Cluster cluster{{"127.0.0.1:7001", "127.0.0.1:7002"}, directory_};
  const std::string text = job_toml(cell, windows_of({true, {}, {}, ""}), 512, 9, cluster);
  EXPECT_NE(text.find("hosts = [\"127.0.0.1:7001\", \"127.0.0.1:7002\"]"), std::string::npos);
  EXPECT_NE(text.find("host = \"one\""), std::string::npos);
  EXPECT_NE(text.find("allow = [\"kill-restart\"]"), std::string::npos);
  // 64 ms, 2 ms for each message, and for the last worker 8 + 3 requests of 2 ms.
  EXPECT_NEAR(work_of(cell.situation).step_cost_s, 0.022, 0.003);
}

TEST_F(StragglersTest, ACellThatWasNotRunIsInTheListWithoutNumbers) {
  Cell cell = cell_of("slow-server", "nd");
  cell.not_run = "nobody wanted it";
  const Cell failed = cell_of("mix", "nd");
  const std::vector<Line> lines = {line_of(cell, {}, ""), line_of(failed, {}, "its job failed")};
  const auto json = nlohmann::json::parse(to_json(lines));
  ASSERT_EQ(json.size(), 2U);
  for (const char* key : {"job_seconds", "ideal_seconds", "share_of_ideal", "speedup_over_none",
                          "actions", "records_repeated", "records_lost"}) {
    EXPECT_TRUE(json[0].at(key).is_null()) << key;
  }
  EXPECT_EQ(json[0].at("not_run"), cell.not_run);
  EXPECT_EQ(json[1].at("not_run"), "its job failed");
  EXPECT_EQ(table(lines).back(), "not run: mix, nd: its job failed");
}

}  // namespace
}  // namespace antdt::stragglers
