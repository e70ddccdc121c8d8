#include "ctl/control/solutions/restart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/control/solutions/nd.h"

namespace antdt::ctl::solutions {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr std::uint64_t kMuch = 4'000'000;

// Four workers of 1000 samples/s on hosts a (w0, w1) and b (w2, w3); w3 has been slow for a window.
// Host c is empty.
ClusterView view_with(double slow_speed, std::uint64_t remaining = kMuch) {
  ClusterView view;
  for (std::uint32_t i = 0; i < 4; ++i) {
    WorkerView w;
    w.member = {WorkerId{'w', i}, Attempt{1}};
    w.host = i < 2 ? "a" : "b";
    w.measured = true;
    w.share = 256;
    w.speed_transient = w.speed_persistent = 1000;
    view.workers.push_back(w);
  }
  WorkerView& slow = view.workers[3];
  slow.speed_transient = slow.speed_persistent = slow_speed;
  slow.verdict.kind = VerdictKind::kPersistent;
  slow.verdict.severity = 1000 / slow_speed;
  view.rules.global_batch = 1024;
  view.transient_window = seconds(10);
  view.persistent_window = seconds(60);
  view.remaining = remaining;
  view.places = {{"c", 2}};
  view.pending_time = Duration::zero();
  view.restart_time = seconds(20);
  return view;
}

const KillRestart* wish(const Decision& decision) {
  return decision.actions.empty() ? nullptr : std::get_if<KillRestart>(&decision.actions[0]);
}

TEST(Restart, APersistentStragglerIsStartedAgainElsewhere) {
  RestartJudge judge;
  const Decision decision = judge.decide(view_with(125));
  ASSERT_TRUE(wish(decision));
  EXPECT_EQ(to_string(wish(decision)->member.worker), "w3");
  EXPECT_THAT(decision.reason, HasSubstr("w3 on b has been 8.0x slower than the others for 60 s"));
  EXPECT_THAT(decision.reason, HasSubstr("started again on c"));
}

TEST(Restart, OneThatIsSlowOnlyNowIsLeftAlone) {
  auto view = view_with(125);
  view.workers[3].verdict.kind = VerdictKind::kTransient;
  EXPECT_FALSE(wish(RestartJudge().decide(view)));
}

TEST(Restart, ALittleSlowerIsNoReason) {
  EXPECT_FALSE(wish(RestartJudge().decide(view_with(1000 / RestartJudge::kLambda + 1))));
}

TEST(Restart, IsNotOrderedWhenTheClusterIsBusyOrHasNoOtherHost) {
  auto busy = view_with(125);
  busy.pending_time.reset();
  EXPECT_FALSE(wish(RestartJudge().decide(busy)));
  auto only_its_own = view_with(125);
  only_its_own.places = {{"b", 3}};
  EXPECT_FALSE(wish(RestartJudge().decide(only_its_own)));
}

TEST(Restart, IsNotOrderedToAHostThatIsSlowItself) {
  auto view = view_with(125);
  view.places = {{"a", 3}};
  view.workers[0].verdict.kind = VerdictKind::kDeterministic;
  EXPECT_FALSE(wish(RestartJudge().decide(view)));
  view.places = {{"a", 3}, {"c", 1}};
  const Decision decision = RestartJudge().decide(view);
  ASSERT_TRUE(wish(decision));
  EXPECT_EQ(wish(decision)->host, "c");
}

TEST(Restart, IsNotOrderedWhenTheRestOfTheJobDoesNotPayForIt) {
  // 4 workers train some 4000 samples/s, so a restart of 20 s must be worth a seventh of 25 s.
  EXPECT_FALSE(wish(RestartJudge().decide(view_with(500, 100'000))));
  EXPECT_TRUE(wish(RestartJudge().decide(view_with(500, 1'000'000))));
  auto slow_to_start = view_with(500, 1'000'000);
  slow_to_start.restart_time = minutes(3);
  EXPECT_FALSE(wish(RestartJudge().decide(slow_to_start)));
}

TEST(Restart, WithFixedEqualBatchesTheSlowestWorkerSetsTheSpeed) {
  auto view = view_with(500, 100'000);  // 50 s instead of 25 s are left: now it pays
  view.rules.adjust = Adjust::kNone;
  view.restart_time = seconds(10);
  EXPECT_TRUE(wish(RestartJudge().decide(view)));
}

TEST(Restart, TimeThatAllWaitForAnywayIsNoGain) {
  const auto wished = [](double slow_speed, double all_wait_s) {
    auto view = view_with(slow_speed);
    view.rules.adjust = Adjust::kNone;
    for (WorkerView& w : view.workers) {
      w.batch_s = w.share / w.speed_transient;
      w.wait_share = all_wait_s / (all_wait_s + w.batch_s);
    }
    return wish(RestartJudge().decide(view)) != nullptr;
  };
  EXPECT_TRUE(wished(500, 0.26));  // a step takes 0.77 s, and 0.52 s after a restart
  EXPECT_FALSE(wished(500, 7));
  EXPECT_TRUE(wished(100, 7));  // 9.6 s, and 7.3 s after a restart
}

TEST(Restart, AWorkerThatIsSlowOnTheNextHostTooStaysThere) {
  RestartJudge judge;
  auto view = view_with(125);
  ASSERT_TRUE(wish(judge.decide(view)));
  ASSERT_TRUE(wish(judge.decide(view))) << "it was advised only: the wish stays";
  view.workers[3].member.attempt = Attempt{2};
  view.workers[3].host = "c";
  view.places = {{"d", 1}};
  EXPECT_FALSE(wish(judge.decide(view)));
}

TEST(Restart, NobodyIsStartedAgainOverAndOver) {
  RestartJudge judge;
  auto view = view_with(125);
  int wished = 0;
  for (std::uint32_t attempt = 1; attempt < 6; ++attempt) {
    view.workers[3].member.attempt = Attempt{attempt};  // the new process did not come in time
    wished += wish(judge.decide(view)) ? 1 : 0;
  }
  EXPECT_EQ(wished, RestartJudge::kMost);
}

// A step is shorter if samples move between domains, but the plan would not have that.
TEST(Restart, NdReachesItWhereRecordsMayNotLeaveTheirDomain) {
  ClusterView view = view_with(125);
  const std::vector<std::uint32_t> balanced = {307, 307, 364, 46};
  for (std::size_t i = 0; i < 4; ++i) view.workers[i].share = balanced[i];
  const auto id = [&](std::size_t i) { return view.workers[i].member.worker; };
  view.bounds.rests = {{"east", {id(0), id(1)}, 6'000'000}, {"west", {id(2), id(3)}, 4'000'000}};
  Nd nd;
  EXPECT_TRUE(wish(nd.decide(view, {})));
  Nd everywhere;
  view.bounds.rests.clear();
  EXPECT_FALSE(wish(everywhere.decide(view, {}))) << "it moves the batch first";
}

TEST(Restart, NdMovesTheBatchFirst) {
  Nd nd;
  const auto view = view_with(125);
  EXPECT_TRUE(nd.decide(view, MonoTime{}).actions.empty());
  const Decision second = nd.decide(view, MonoTime{});
  ASSERT_EQ(second.actions.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<AdjustBatch>(second.actions[0]));
  auto moved = view;
  for (std::size_t i = 0; i < 4; ++i) moved.workers[i].share = i == 3 ? 41 : 327;
  moved.workers[0].share += 2;
  const Decision third = nd.decide(moved, MonoTime{});
  EXPECT_TRUE(wish(third));
}

// ------------------------------------------------------------------------- servers

// Two servers on a and b beside equal workers; s1 is slow, and is busy 60 % of the time.
ClusterView view_with_servers(double severity, std::uint64_t remaining = kMuch) {
  ClusterView view = view_with(1000, remaining);
  view.workers[3].verdict = {};
  for (WorkerView& w : view.workers) {
    w.batch_s = 0.2;
    w.wait_share = 0.2;
  }
  for (std::uint32_t i = 0; i < 2; ++i) {
    ServerView s;
    s.member = {WorkerId{'s', i}, Attempt{1}};
    s.host = i == 0 ? "a" : "b";
    s.role = ServerRole::kAlone;
    s.measured = true;
    s.service_us = s.service_us_persistent = i == 0 ? 100 : 100 * severity;
    s.busy_share = i == 0 ? 0.2 : 0.6;
    view.servers.push_back(s);
  }
  view.servers[1].verdict.kind = VerdictKind::kPersistent;
  view.servers[1].verdict.severity = severity;
  return view;
}

TEST(RestartOfServers, APersistentStragglerGoesElsewhere) {
  RestartJudge judge;
  const Decision decision = judge.decide(view_with_servers(3));
  ASSERT_TRUE(wish(decision));
  EXPECT_EQ(wish(decision)->member, (Member{WorkerId{'s', 1}, Attempt{1}}));
  EXPECT_THAT(decision.reason,
              HasSubstr("s1 on b has taken 3.0x as long for a request as the others for 60 s (300 "
                        "us) and is busy 60 % of the time: with another on c"));
}

TEST(RestartOfServers, AServerThatIsSlowOnlyNowOrALittleIsLeftAlone) {
  ClusterView now = view_with_servers(3);
  now.servers[1].verdict.kind = VerdictKind::kTransient;
  EXPECT_FALSE(wish(RestartJudge().decide(now)));
  EXPECT_FALSE(wish(RestartJudge().decide(view_with_servers(RestartJudge::kLambda))));
}

TEST(RestartOfServers, IsNotOrderedWhenItCostsMoreThanItGains) {
  // 25 s are left at 4096 samples/s, of which 40 % could be gained; a restart takes 20 s.
  EXPECT_FALSE(wish(RestartJudge().decide(view_with_servers(3, 100'000))));
  ClusterView idle = view_with_servers(3);
  idle.servers[1].busy_share = 0.01;
  EXPECT_FALSE(wish(RestartJudge().decide(idle))) << "nobody waits for it";
}

TEST(RestartOfServers, IsNotOrderedToAHostThatIsSlowItself) {
  ClusterView view = view_with_servers(3);
  view.places = {{"a", 1}};
  EXPECT_TRUE(wish(RestartJudge().decide(view)));
  view.servers[0].verdict.kind = VerdictKind::kDeterministic;
  EXPECT_FALSE(wish(RestartJudge().decide(view)));
  view.places = {{"a", 1}, {"c", 1}};
  const Decision decision = RestartJudge().decide(view);
  ASSERT_TRUE(wish(decision));
  EXPECT_EQ(wish(decision)->host, "c");
}

TEST(RestartOfServers, AWorkerComesFirst) {
  ClusterView view = view_with_servers(3);
  view.workers[3] = view_with(125).workers[3];
  const Decision decision = RestartJudge().decide(view);
  ASSERT_TRUE(wish(decision));
  EXPECT_EQ(to_string(wish(decision)->member.worker), "w3");
}

}  // namespace
}  // namespace antdt::ctl::solutions
