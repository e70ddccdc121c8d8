// A server as its agent and the job daemon see it: a fake of both talks to real
// servers, and workers train on them meanwhile.
#include <filesystem>
#include <future>

#include "tests/trainer/children_stop.h"
#include "tests/trainer/manifest.h"
#include "tests/trainer/may_fork.h"
#include "tests/trainer/ps/server_fixture.h"

namespace antdt::ps {
namespace {

using testing::HasSubstr;

TEST_F(PsServerAgentTest, JoinsUntilItIsToldWhatToServe) {
  RealServer first(path(), 0);
  RealServer second(path(), 1);
  const auto join = await<wire::Join>(0);
  EXPECT_FALSE(join.message.collective);
  EXPECT_NE(join.message.pid, 0U);
  EXPECT_EQ(join.envelope.generation, Generation{});
  EXPECT_EQ(await<wire::Join>(0).message.endpoint, join.message.endpoint) << "said again";
  await_joins();
  EXPECT_EQ(serve_.servers[0], join.message.endpoint);
  EXPECT_NE(serve_.servers[0], serve_.servers[1]);
  const Generation generation{1};
  serve(generation);
  const auto own = link(0, generation);
  const auto other = link(1, generation);
  ASSERT_TRUE(other->idle());
  const auto decided = push(*own, 1, 0);
  ASSERT_TRUE(decided) << decided.error().message;
  EXPECT_EQ(decided->status, wire::PsFate::kApplied);
  const auto report =
      await<wire::Report>(0, [](const auto& h) { return h.message.step == Step{1}; });
  EXPECT_EQ(report.message.activity, "compute");
  const auto stats = await<wire::PsStats>(0, [](const auto& h) { return h.message.version == 1; });
  EXPECT_EQ(stats.message.pushes_applied, 1U);
  EXPECT_EQ(stats.envelope.generation, generation);
  leave(2, 0);
  EXPECT_EQ(first.outcome().value_or(-1), 0);
  EXPECT_EQ(second.outcome().value_or(-1), 0);
  EXPECT_FALSE(std::filesystem::exists(serve_.servers[0])) << "its socket goes with it";
}

TEST_F(PsServerAgentTest, AWorkerThatLeavesIsAnsweredForAndTheOthersGoOn) {
  RealServer first(path(), 0);
  RealServer second(path(), 1);
  await_joins();
  const Generation generation{1};
  serve(generation);
  const auto kept = link(0, generation);
  const auto lost = link(1, generation);
  auto together = std::async(std::launch::async, [&] { return push(*kept, 1, 0); });
  ASSERT_TRUE(push(*lost, 1, 0));
  ASSERT_TRUE(together.get());
  auto waits = std::async(std::launch::async, [&] { return push(*kept, 2, 1); });
  serve_.leaving = {serve_.workers.back()};
  serve_.workers.pop_back();
  const auto serving = serve(generation);
  ASSERT_EQ(serving[0].left.size(), 1U);
  EXPECT_EQ(serving[0].left[0].worker, w(1).worker);
  EXPECT_EQ(serving[0].left[0].phase, 1U);
  ASSERT_EQ(serving[0].left[0].applied.size(), 1U);
  EXPECT_EQ(serving[0].left[0].applied[0].from, 0U);
  EXPECT_EQ(serving[0].left[0].applied[0].to, 1U);
  EXPECT_THAT(serving[1].left, testing::IsEmpty());
  const auto alone = waits.get();
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(alone->version, 2U);
  // A late order of the job daemon is older than the one in force.
  wire::PsServe old = serve_;
  old.number = 1;
  old.index = 0;
  old.workers.push_back(old.leaving.front());
  say(0, old, generation);
  EXPECT_EQ(await<wire::PsServing>(0).message.number, 2U);
  const auto refused = push(*lost, 2, 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kAborted);
  leave(2, 75);
  EXPECT_EQ(first.outcome().value_or(-1), 75);
}

TEST_F(PsServerAgentTest, ANewGroupGoesOnFromACheckpointOfTheOneBefore) {
  if (!kMayFork) GTEST_SKIP() << "a child writes the checkpoint";
  RealServer first(path(), 0);
  RealServer second(path(), 1);
  await_joins();
  const Generation before{1};
  const Generation after{2};
  serve(before);
  const auto own = link(0, before);
  ASSERT_TRUE(link(1, before)->idle());
  ASSERT_TRUE(push(*own, 1, 0));
  ASSERT_TRUE(push(*own, 2, 1));
  const auto saved = cut(1, before);
  for (const wire::PsSaved& s : saved) {
    EXPECT_EQ(s.error, "");
    EXPECT_EQ(s.version, 2U);
    for (const auto& file : s.files) {
      EXPECT_TRUE(std::filesystem::exists(run_dir() + "/checkpoints/1/" + file.name));
    }
  }
  EXPECT_EQ(saved[0].files.size() + saved[1].files.size(), kSlices);
  std::vector<wire::CheckpointFile> files = saved[0].files;
  files.insert(files.end(), saved[1].files.begin(), saved[1].files.end());
  ASSERT_TRUE(write_manifest(run_dir() + "/checkpoints/1", Step{2}, files));
  const auto stats = await<wire::PsStats>(0, [](const auto& h) { return h.message.cuts == 1; });
  EXPECT_GT(saved[0].pause_us, 0U);
  EXPECT_EQ(stats.message.cut_pause_us_max, saved[0].pause_us);
  EXPECT_EQ(stats.message.cut_pause_us_sum, saved[0].pause_us);
  ASSERT_EQ(saved[0].places.size(), 2U);
  ASSERT_EQ(saved[0].places[0].applied.size(), 1U);
  EXPECT_EQ(saved[0].places[0].applied[0].to, 2U);
  ASSERT_TRUE(push(*own, 3, 2)) << "this one is not in it";
  EXPECT_EQ(cut(1, before)[1].version, 2U) << "said again it is answered again";
  EXPECT_EQ(value(*own, 3), 3);

  wire::PsServe late = serve_;
  serve_.number = 0;
  serve_.restore = "checkpoints/1";
  serve_.version = 2;
  serve(after);
  late.number = 9;
  late.index = 0;
  say(0, late, before);  // the group before is over: nobody answers
  const auto gone = push(*own, 4, 3);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind, ErrorKind::kAborted);
  const auto again = link(0, after);
  ASSERT_TRUE(link(1, after)->idle());
  EXPECT_EQ(value(*again, 2), 2);
  const auto decided = push(*again, 1, 2);
  ASSERT_TRUE(decided) << decided.error().message;
  EXPECT_EQ(decided->version, 3U);
  EXPECT_EQ(value(*again, 3), 3);
  serve_.index = 0;
  say(0, serve_, after);
  await<wire::Report>(0, [](const auto& h) {
    return h.message.io == "reading the checkpoint" && h.message.io_done_bytes > 0 &&
           h.message.io_done_bytes <= h.message.io_total_bytes;
  });
  const auto serving = await<wire::PsServing>(0);
  EXPECT_EQ(serving.envelope.generation, after) << "the one before was not answered";
  leave(2, 0);
}

TEST_F(PsServerAgentTest, ACheckpointThatIsNotWrittenForTheJobsHangAfterFailsAndTrainingGoesOn) {
  if (!kMayFork) GTEST_SKIP() << "a child writes the checkpoint";
  config_ = R"({"failure": {"hang_after_ms": 2000}})";
  RealServer first(path(), 0);
  RealServer second(path(), 1);
  await_joins();
  const Generation generation{1};
  serve(generation);
  const auto own = link(0, generation);
  ASSERT_TRUE(link(1, generation)->idle());
  ASSERT_TRUE(push(*own, 1, 0));
  {
    const ChildrenStop stopped;
    for (const wire::PsSaved& s : cut(1, generation)) EXPECT_THAT(s.error, HasSubstr("for 2 s"));
  }
  ASSERT_TRUE(push(*own, 2, 1));
  for (const wire::PsSaved& s : cut(2, generation)) EXPECT_EQ(s.version, 2U);
  leave(2, 0);
}

TEST_F(PsServerAgentTest, AServerToldToKeepItsRowsReadsNoCheckpoint) {
  RealServer first(path(), 0);
  RealServer second(path(), 1);
  await_joins();
  serve(Generation{1});
  const auto own = link(0, Generation{1});
  ASSERT_TRUE(link(1, Generation{1})->idle());
  ASSERT_TRUE(push(*own, 1, 0));
  EXPECT_EQ(value(*own, 1), 1);  // both servers have applied it
  serve_.number = 0;
  serve_.restore = "checkpoints/none";
  serve_.version = 1;
  serve_.keep = true;
  serve(Generation{2});
  const auto again = link(0, Generation{2});
  EXPECT_EQ(value(*again, 1), 1);
  leave(2, 0);
}

TEST_F(PsServerAgentTest, AServerWhoseAttemptIsOverEndsAndChangesNothing) {
  RealServer server(path(), 0);
  await<wire::Join>(0);
  say(0, wire::Refused{wire::RefusalCode::kStale, "attempt 2 runs already"});
  EXPECT_EQ(server.outcome().value_or(-1), 0);
}

TEST_F(PsServerAgentTest, AServerThatIsRefusedSaysWhy) {
  RealServer server(path(), 0);
  await<wire::Join>(0);
  say(0, wire::Refused{wire::RefusalCode::kBusy, "again, please"});
  say(0, wire::Refused{wire::RefusalCode::kVersion, "no version in common"});
  const auto outcome = server.outcome();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("no version in common"));
}

TEST_F(PsServerAgentTest, AnAgentThatWasStartedAgainIsGreetedAgain) {
  RealServer server(path(), 0);
  await<wire::Join>(0);
  const int before = hellos_;
  say(0, wire::Refused{wire::RefusalCode::kUnknown, "who is that?"});
  await<wire::Hello>(0);
  EXPECT_GT(hellos_, before);
  await<wire::Join>(0);
  leave(1, 0);
}

TEST_F(PsServerAgentTest, AnOrderItCannotFollowIsRefusedAndItGoesOn) {
  RealServer first(path(), 0);
  RealServer second(path(), 1);
  await_joins();
  const auto refusal = [&](const wire::PsServe& message) {
    say(0, message, Generation{1});
    return await<wire::Refused>(0).message.reason;
  };
  wire::PsServe wrong = serve_;
  wrong.number = 1;
  wrong.index = 2;
  EXPECT_THAT(refusal(wrong), HasSubstr("not end point 2 of the 2"));
  wrong.index = 1;
  EXPECT_THAT(refusal(wrong), HasSubstr("not end point 1"));
  wrong.index = 0;
  wrong.sync = SyncStrategy::kAllReduce;
  EXPECT_THAT(refusal(wrong), HasSubstr("needs no parameter servers"));
  serve(Generation{1});
  leave(2, 0);
}

}  // namespace
}  // namespace antdt::ps
