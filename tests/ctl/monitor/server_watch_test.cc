#include "ctl/monitor/server_watch.h"

#include <gtest/gtest.h>

namespace antdt::ctl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Member s(std::uint32_t index, std::uint32_t attempt = 1) {
  return {WorkerId{'s', index}, Attempt{attempt}};
}

MonitorConfig windows() {
  MonitorConfig config;
  config.transient_window = seconds(2);
  config.persistent_window = seconds(10);
  return config;
}

class ServerWatchTest : public ::testing::Test {
 protected:
  ServerWatchTest() { watch.set_servers(three()); }
  static std::vector<ServerWatch::ServerInfo> three(ServerRole role = ServerRole::kAlone) {
    return {{s(0), "a", role}, {s(1), "b", role}, {s(2), "c", role}};
  }
  // 100 requests in each second; s1 takes `slow` times 100 us.
  void run(int for_s, double slow, std::uint64_t requests = 100) {
    for (int i = 0; i < for_s; ++i) {
      now += seconds(1);
      for (std::uint32_t n = 0; n < 3; ++n) {
        done[n] += requests;
        busy[n] +=
            static_cast<std::uint64_t>(static_cast<double>(requests) * 100 * (n == 1 ? slow : 1));
        watch.step(s(n), done[n], busy[n], now);
      }
      views = watch.view(now);
    }
  }

  ServerWatch watch{windows()};
  MonoTime now{seconds(100)};
  std::uint64_t done[3] = {}, busy[3] = {};
  std::vector<ServerView> views;
};

TEST_F(ServerWatchTest, MeasuresTheTimeForARequestAndHowBusyTheyAre) {
  run(12, 2);
  ASSERT_EQ(views.size(), 3U);
  EXPECT_TRUE(views[1].measured);
  EXPECT_DOUBLE_EQ(views[0].service_us, 100);
  EXPECT_DOUBLE_EQ(views[1].service_us, 200);
  EXPECT_DOUBLE_EQ(views[1].service_us_persistent, 200);
  EXPECT_NEAR(views[1].busy_share, 0.02, 1e-6) << "100 requests of 200 us in a second";
}

TEST_F(ServerWatchTest, ASlowServerIsATransientStragglerAndAfterAWindowAPersistentOne) {
  run(12, 1);
  for (const ServerView& view : views) EXPECT_EQ(view.verdict.kind, VerdictKind::kNone);
  run(4, 3);
  EXPECT_EQ(views[1].verdict.kind, VerdictKind::kTransient);
  EXPECT_NEAR(views[1].verdict.severity, 3, 0.01);
  EXPECT_EQ(views[0].verdict.kind, VerdictKind::kNone) << "it is no leader among the slow";
  run(8, 3);
  EXPECT_EQ(views[1].verdict.kind, VerdictKind::kPersistent);
  EXPECT_GT(views[1].verdict.severity, 2.5);
  run(4, 1);
  EXPECT_EQ(views[1].verdict.kind, VerdictKind::kNone) << "and is forgiven when it is over";
}

TEST_F(ServerWatchTest, OneThatWasAlwaysSlowIsADeterministicStraggler) {
  run(14, 3);
  EXPECT_EQ(views[1].verdict.kind, VerdictKind::kDeterministic);
}

TEST_F(ServerWatchTest, SaysNothingOfAFewRequests) {
  run(12, 3, 2);
  for (const ServerView& view : views) {
    EXPECT_FALSE(view.measured);
    EXPECT_EQ(view.verdict.kind, VerdictKind::kNone);
  }
}

TEST_F(ServerWatchTest, AnotherAttemptAndAnotherPartBeginWithNothing) {
  run(12, 3);
  auto other = three();
  other[1].member = s(1, 2);
  other[2].role = ServerRole::kPrimary;
  watch.set_servers(other);
  views = watch.view(now);
  EXPECT_TRUE(views[0].measured);
  EXPECT_FALSE(views[1].measured);
  EXPECT_FALSE(views[2].measured);
  watch.step(s(1, 1), 1, 1, now);  // from the attempt that has gone
  EXPECT_FALSE(watch.view(now)[1].measured);
}

TEST_F(ServerWatchTest, LikeIsComparedWithLike) {
  auto roles = three(ServerRole::kPrimary);
  roles[1].role = ServerRole::kBackup;
  watch.set_servers(roles);
  run(14, 3);
  EXPECT_TRUE(views[1].measured);
  EXPECT_EQ(views[1].verdict.kind, VerdictKind::kNone) << "nobody else is a backup";
}

}  // namespace
}  // namespace antdt::ctl
