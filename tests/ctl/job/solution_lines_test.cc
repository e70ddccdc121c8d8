// Tests of the view that a user's program is shown, and of the parsing of its answers.
#include "ctl/job/solution_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace antdt::ctl {
namespace {

using ::testing::HasSubstr;

ClusterView a_view(std::uint32_t workers = 2) {
  ClusterView view;
  view.plan = PlanVersion{4};
  view.rules.global_batch = 128;
  view.transient_window = std::chrono::seconds(10);
  for (std::uint32_t i = 0; i < workers; ++i) {
    WorkerView w;
    w.member = {{'w', i}, Attempt{i + 1}};
    w.host = "a";
    w.share = 64;
    w.measured = true;
    w.speed_transient = 100;
    view.workers.push_back(w);
  }
  return view;
}
Result<Decision> parsed(std::string_view line) { return parse_decision(line, a_view(), 7); }
std::string refused(std::string_view line) {
  const auto decision = parsed(line);
  EXPECT_FALSE(decision) << line;
  return decision ? "" : decision.error().message;
}

TEST(SolutionLinesTest, AViewIsOneLineWithWhatTheMonitorKnows) {
  ClusterView view = a_view();
  const MonoTime now{std::chrono::seconds(100)};
  view.workers[1].verdict.kind = VerdictKind::kPersistent;
  view.workers[1].verdict.since = now - std::chrono::seconds(20);
  view.workers[1].host = "a\n\xff";
  const std::string line = view_line(view, 7, 12.5, now);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto told = nlohmann::json::parse(line);
  EXPECT_EQ(told.at("view"), 7);
  EXPECT_EQ(told.at("time_s"), 12.5);
  EXPECT_EQ(told.at("rules").at("global_batch"), 128);
  EXPECT_EQ(told.at("samples_remaining"), nullptr);
  const auto& w1 = told.at("workers").at(1);
  EXPECT_EQ(w1.at("worker"), "w1");
  EXPECT_EQ(w1.at("samples_per_second"), 100);
  EXPECT_EQ(w1.at("verdict").at("kind"), "persistent");
  EXPECT_EQ(w1.at("verdict").at("for_s"), 20);
  EXPECT_EQ(w1.at("fit"), nullptr);
}

TEST(SolutionLinesTest, ADecisionIsItsActionsAndItsReason) {
  const auto decision = parsed(
      R"({"view":7,"reason":"so\nit is","actions":[
          {"kind":"adjust-batch","shares":{"w1":96,"w0":32},"because_of":"w1"},
          {"kind":"kill-restart","worker":"w1"},{"kind":"evict","worker":"w0"},
          {"kind":"resize","count":3},{"kind":"backup-workers","count":1},
          {"kind":"adjust-learning-rate","factor":0.5},{"kind":"set-sync","threshold":0.02}]})");
  ASSERT_TRUE(decision) << decision.error().message;
  EXPECT_EQ(decision->reason, "so it is");
  ASSERT_EQ(decision->actions.size(), 7U);
  const auto& batch = std::get<AdjustBatch>(decision->actions[0]);
  EXPECT_EQ(batch.because_of, (WorkerId{'w', 1}));
  ASSERT_EQ(batch.shares.size(), 2U);
  EXPECT_EQ(batch.shares[0].samples, 32U);
  EXPECT_EQ(batch.shares[1].samples, 96U);
  const auto& restart = std::get<KillRestart>(decision->actions[1]);
  EXPECT_EQ(restart.member, (Member{{'w', 1}, Attempt{2}})) << "the attempt that it was shown";
  EXPECT_EQ(std::get<Resize>(decision->actions[3]).count, 3U);
  EXPECT_EQ(std::get<BackupWorkers>(decision->actions[4]).count, 1U);
  EXPECT_EQ(std::get<AdjustLearningRate>(decision->actions[5]).factor, 0.5);
  EXPECT_EQ(std::get<SetSync>(decision->actions[6]).threshold, 0.02);
}

TEST(SolutionLinesTest, MicroBatchesMayBeNamed) {
  const auto decision = parsed(
      R"({"view":7,"actions":[{"kind":"adjust-batch","shares":
          {"w0":{"micro_batch":16,"accumulation":2},"w1":{"micro_batch":32,"accumulation":3}}}]})");
  ASSERT_TRUE(decision) << decision.error().message;
  const auto& batch = std::get<AdjustBatch>(decision->actions[0]);
  EXPECT_EQ(batch.shares[1].samples, 96U);
  EXPECT_EQ(batch.shares[1].micro_batch, 32U);
  EXPECT_EQ(batch.shares[1].accumulation, 3U);
}

TEST(SolutionLinesTest, NothingToDoIsAnAnswer) {
  const auto decision = parsed(R"({"view":7})");
  ASSERT_TRUE(decision) << decision.error().message;
  EXPECT_TRUE(decision->actions.empty());
}

TEST(SolutionLinesTest, AReasonIsCutBetweenCharacters) {
  std::string reason(499, 'x');
  const auto decision = parsed(R"({"view":7,"reason":")" + reason + R"(ä"})");
  ASSERT_TRUE(decision) << decision.error().message;
  EXPECT_EQ(decision->reason, reason);
}

TEST(SolutionLinesTest, AnInvalidAnswerIsRefusedWithTheReason) {
  EXPECT_THAT(refused("hello\x01"), HasSubstr("no JSON object on one line: hello?"));
  EXPECT_THAT(refused(""), HasSubstr("no JSON"));
  EXPECT_THAT(refused("[1]"), HasSubstr("no JSON object"));
  EXPECT_THAT(refused(std::string(100'000, '[')), HasSubstr("no JSON"));
  EXPECT_THAT(refused(R"({"view":6})"), HasSubstr("not to \"view\": 7"));
  EXPECT_THAT(refused(R"({"view":7,"actions":{}})"), HasSubstr("no list"));
  EXPECT_THAT(refused(R"({"view":7,"actions":[3]})"), HasSubstr("without a \"kind\""));
  EXPECT_THAT(refused(R"({"view":7,"actions":[{"kind":"format"}]})"), HasSubstr("no kind of"));
  EXPECT_THAT(refused(R"({"view":7,"actions":[{"kind":"evict","worker":"w9"}]})"),
              HasSubstr("one of the view's workers"));
  EXPECT_THAT(refused(R"({"view":7,"actions":[{"kind":"evict"}]})"), HasSubstr("worker"));
  EXPECT_THAT(refused(R"({"view":7,"actions":[{"kind":"resize","count":-1}]})"),
              HasSubstr("\"count\""));
  EXPECT_THAT(refused(R"({"view":7,"actions":[{"kind":"backup-workers","count":2}]})"),
              HasSubstr("from 0 to 1"));
  EXPECT_THAT(refused(R"({"view":7,"actions":[{"kind":"adjust-learning-rate"}]})"),
              HasSubstr("\"factor\""));
  EXPECT_THAT(refused(R"({"view":7,"actions":[{"kind":"set-sync","threshold":"less"}]})"),
              HasSubstr("\"threshold\""));
  std::string many;
  for (int i = 0; i < 65; ++i) many += R"({"kind":"resize","count":1},)";
  many.pop_back();
  EXPECT_THAT(refused(R"({"view":7,"actions":[)" + many + "]}"), HasSubstr("64 at most"));
}

TEST(SolutionLinesTest, SharesThatCannotBeAreRefused) {
  const auto shares = [](const std::string& text) {
    return refused(R"({"view":7,"actions":[{"kind":"adjust-batch","shares":)" + text + "}]}");
  };
  EXPECT_THAT(shares("[1,2]"), HasSubstr("all 2 workers"));
  EXPECT_THAT(shares(R"({"w0":1})"), HasSubstr("all 2 workers"));
  EXPECT_THAT(shares(R"({"w0":1,"w2":1})"), HasSubstr("without w1"));
  EXPECT_THAT(shares(R"({"w0":1,"w1":1e300})"), HasSubstr("whole number"));
  EXPECT_THAT(shares(R"({"w0":1,"w1":{"micro_batch":1,"accumulation":1}})"),
              HasSubstr("only some workers"));
  EXPECT_THAT(shares(R"({"w0":1,"w1":{"micro_batch":128,"accumulation":33554433}})"),
              HasSubstr("\"accumulation\" from 1 to 1"));
}

}  // namespace
}  // namespace antdt::ctl
