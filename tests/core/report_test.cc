// The reports of a job: written reports can be read again, missing fields are named, and the page
// for users names every field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/os/fs.h"
#include "core/report/job_report.h"
#include "core/report/json.h"
#include "core/report/states.h"
#include "tests/report_page.h"

namespace antdt::report {
namespace {

using testing::HasSubstr;

Status example() {
  Status s;
  s.job = "ctr-1";
  s.state = "training";
  s.samples_done = 7;
  s.train_loss = 0.5;
  s.budgets = {{"oom", {2, 1}}};
  s.failures = {{.time_s = 1.5, .worker = "w1", .cls = "signal", .cause = "killed"}};
  WorkerStatus w;
  w.id = "w0";
  w.rank = 3;
  w.straggler = Straggler{"transient", 3, "throttled", "held back"};
  w.io = Io{.what = "writing the checkpoint", .done_bytes = 5, .total_bytes = 9};
  s.workers = {w, WorkerStatus{.id = "w1"}};
  s.outcome = Ending{"stopped", 75};
  return s;
}

TEST(Report, ANumberThatIsNotFiniteIsNullAndIsReadBack) {
  Summary summary;
  summary.epochs = {EpochSummary{std::nan(""), 10}, EpochSummary{HUGE_VAL, 20}};
  const std::string text = to_text(json_of(summary));
  EXPECT_THAT(text, HasSubstr(R"("train_loss":null)"));
  const auto read = from_json<Summary>(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(std::isnan(read->epochs.at(1).train_loss));
  EXPECT_EQ(read->epochs.at(1).samples, 20U);
}

TEST(Report, AStateIsKnownByItsNameAndThatOfANewerVersionIsNot) {
  Status s = example();
  EXPECT_EQ(state_of(s), JobState::kTraining);
  s.state = "dreaming";
  EXPECT_FALSE(state_of(s));
  EXPECT_EQ(state_of(WorkerStatus{.state = "leaving"}), ProcessState::kLeaving);
  EXPECT_EQ(state_of(ServerStatus{.state = "joined"}), ProcessState::kJoined);
  EXPECT_EQ(end_of(Summary{.state = "stopped"}), JobEnd::kStopped);
  EXPECT_FALSE(end_of(Summary{.state = "training"})) << "that is no end";
  EXPECT_EQ(outcome_of(Action{.outcome = "advised"}), ActionOutcome::kAdvised);
}

TEST(Report, WrittenReportsAreReadBack) {
  const std::string text = to_text(json_of(example()));
  const auto read = from_json<Status>(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_text(json_of(*read)), text);
  EXPECT_EQ(read->workers[0].straggler->cause, "throttled");
  EXPECT_EQ(read->outcome->code, 75);
}

TEST(Report, MissingValuesAreNullOrLeftOut) {
  const Json s = json_of(example());
  EXPECT_TRUE(s["workers"][1]["rank"].is_null());
  EXPECT_TRUE(s["failures"][0]["recovered_in_s"].is_null());
  EXPECT_FALSE(s["workers"][1].contains("io"));
  EXPECT_FALSE(s.contains("servers"));
  EXPECT_FALSE(s.contains("servers_wanted"));
  EXPECT_FALSE(s.contains("eta_seconds"));
}

// `edit` changes a valid status; then the error is the given one.
void expect_error(const std::function<void(Json&)>& edit, const std::string& error) {
  Json s = json_of(example());
  edit(s);
  const auto read = from_json<Status>(s.dump());
  ASSERT_FALSE(read) << s;
  EXPECT_THAT(read.error().message, HasSubstr(error));
}

TEST(Report, AFieldThatIsMissingOrOfAnotherTypeIsNamed) {
  expect_error([](Json& s) { s.erase("state"); }, "state is missing");
  expect_error([](Json& s) { s["workers"][1].erase("attempt"); }, "workers[1].attempt is missing");
  expect_error([](Json& s) { s["epoch"] = "three"; }, "epoch is no count");
  expect_error([](Json& s) { s["epoch"] = -3; }, "epoch is no count");
  expect_error([](Json& s) { s["budgets"]["oom"] = 4; }, "budgets.oom is no object");
  expect_error([](Json& s) { s["workers"] = Json::object(); }, "workers is no list");
  expect_error([](Json& s) { s["workers"][0]["straggler"]["kind"] = 7; },
               "workers[0].straggler.kind is no text");
  EXPECT_FALSE(from_json<Status>("{"));
  EXPECT_FALSE(from_json<Status>("[1]"));
}

TEST(Report, FieldsThatNobodyKnowsAreIgnoredAndThoseThatCameLaterMayBeMissing) {
  Json s = json_of(example());
  s["workers"][0]["colour"] = "blue";
  s.erase("disk_trouble");
  EXPECT_TRUE(from_json<Status>(s.dump()));
}

TEST(Report, ThePageForUsersNamesEachField) {
  const auto page = read_file(ANTDT_SOURCE_DIR "/docs/reports.md");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(told(*page, "Status"), names_of<Status>());
  EXPECT_EQ(told(*page, "WorkerStatus"), names_of<WorkerStatus>());
  EXPECT_EQ(told(*page, "ServerStatus"), names_of<ServerStatus>());
  EXPECT_EQ(told(*page, "Straggler"), names_of<Straggler>());
  EXPECT_EQ(told(*page, "TracedScript"), names_of<TracedScript>());
  EXPECT_EQ(told(*page, "StepTime"), names_of<StepTime>());
  EXPECT_EQ(told(*page, "HangFound"), names_of<HangFound>());
  EXPECT_EQ(told(*page, "RankStack"), names_of<RankStack>());
  EXPECT_EQ(told(*page, "Io"), names_of<Io>());
  EXPECT_EQ(told(*page, "DeviceClass"), names_of<DeviceClass>());
  EXPECT_EQ(told(*page, "Evaluation"), names_of<Evaluation>());
  EXPECT_EQ(told(*page, "Action"), names_of<Action>());
  EXPECT_EQ(told(*page, "Failure"), names_of<Failure>());
  EXPECT_EQ(told(*page, "Host"), names_of<Host>());
  EXPECT_EQ(told(*page, "HostDevices"), names_of<HostDevices>());
  EXPECT_EQ(told(*page, "HostDevice"), names_of<HostDevice>());
  EXPECT_EQ(told(*page, "DeviceHolder"), names_of<DeviceHolder>());
  EXPECT_EQ(told(*page, "Budget"), names_of<Budget>());
  EXPECT_EQ(told(*page, "Staleness"), names_of<Staleness>());
  EXPECT_EQ(told(*page, "Pushes"), names_of<Pushes>());
  EXPECT_EQ(told(*page, "Ending"), names_of<Ending>());
  EXPECT_EQ(told(*page, "Summary"), names_of<Summary>());
  EXPECT_EQ(told(*page, "EpochSummary"), names_of<EpochSummary>());
  EXPECT_EQ(told(*page, "WorkerSummary"), names_of<WorkerSummary>());
  EXPECT_EQ(told(*page, "TimeSpent"), names_of<TimeSpent>());
  EXPECT_EQ(told(*page, "EmbeddingSteps"), names_of<EmbeddingSteps>());
  EXPECT_EQ(told(*page, "Exchanges"), names_of<Exchanges>());
  EXPECT_EQ(told(*page, "Updates"), names_of<Updates>());
  EXPECT_EQ(told(*page, "Traffic"), names_of<Traffic>());
  EXPECT_EQ(told(*page, "TrafficBetween"), names_of<TrafficBetween>());
  EXPECT_EQ(told(*page, "Skipped"), names_of<Skipped>());
  EXPECT_EQ(told(*page, "Exit"), names_of<Exit>());
}

}  // namespace
}  // namespace antdt::report
