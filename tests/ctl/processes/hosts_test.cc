#include "ctl/processes/hosts.h"

#include <gtest/gtest.h>

namespace antdt::ctl {
namespace {

class HostsTest : public testing::Test {
 protected:
  static HostState host(const std::string& name, std::uint32_t order, std::uint32_t room) {
    HostState h;
    h.host = name + ":7700";
    h.name = name;
    h.order = order;
    h.room = room;
    return h;
  }
  static WorkerProcess runs(std::uint32_t index, const std::string& name) {
    WorkerProcess w;
    w.place = {WorkerId{'w', index}, name + ":7700", 0};
    w.attempt = Attempt{1};
    return w;
  }
  std::string chosen(const WorkerProcess& w, double now_s = 0,
                     const std::vector<std::string>& not_on = {}) {
    const HostState* h = hosts.choose(w, all, now_s, not_on);
    return h == nullptr ? "" : h->name;
  }
  Hosts hosts;
  std::vector<WorkerProcess> all;
};

TEST_F(HostsTest, AWorkerGoesBackToWhereItWas) {
  hosts.up(host("a", 0, 8));
  hosts.up(host("b", 1, 2));
  EXPECT_EQ(chosen(runs(0, "b")), "b");
}

TEST_F(HostsTest, ANewOneGoesWhereMostIsFree) {
  hosts.up(host("a", 0, 2));
  hosts.up(host("b", 1, 3));
  EXPECT_EQ(chosen(runs(9, "")), "b");
  all = {runs(0, "b"), runs(1, "b")};
  EXPECT_EQ(chosen(runs(9, "")), "a");
}

TEST_F(HostsTest, WhereRecordsArePinnedAWorkerStaysInTheDomainOfItsHost) {
  hosts.keep_in(Domains({{"east", {"a", "b"}, {}}, {"west", {"c"}, {"w9"}}}));
  for (const char* name : {"a", "b", "c", "d"}) {
    hosts.up(host(name, static_cast<std::uint32_t>(name[0] - 'a'), 4));
  }
  hosts.down("a:7700");
  EXPECT_EQ(chosen(runs(0, "a")), "b");
  hosts.down("b:7700");
  EXPECT_EQ(chosen(runs(0, "a")), "") << "it waits for a host of the east";
  EXPECT_EQ(chosen(runs(1, "")), "c") << "d is in no domain";
  EXPECT_EQ(chosen(runs(9, "c"), 0, {"c:7700"}), "d") << "it is in the west wherever it runs";
}

TEST_F(HostsTest, FullClosedLostAndForbiddenHostsAreNotChosen) {
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    hosts.up(host(name, static_cast<std::uint32_t>(name[0] - 'a'), 1));
  }
  all = {runs(0, "a")};
  hosts.close("b:7700");
  hosts.down("c:7700");
  EXPECT_EQ(chosen(runs(9, ""), 0, {"d:7700"}), "e");
  EXPECT_EQ(hosts.room_left(all), 2U) << "d and e";
}

TEST_F(HostsTest, TheWorkerItselfTakesNoRoomFromItself) {
  hosts.up(host("a", 0, 1));
  all = {runs(0, "a")};
  EXPECT_EQ(chosen(runs(0, "a")), "a");
  EXPECT_EQ(chosen(runs(1, "a")), "");
}

TEST_F(HostsTest, AServerThatWaitsHasRoomOnItsHostAndAWorkerHasNone) {
  hosts.up(host("a", 0, 2));
  const auto waits = [](char role, const std::string& name) {
    return WorkerProcess::wait({WorkerId{role, 0}, name.empty() ? "" : name + ":7700", 0},
                               Attempt{2});
  };
  all = {waits('s', "a"), runs(1, "a")};
  EXPECT_EQ(hosts.room_left(all), 0U);
  EXPECT_EQ(chosen(runs(9, "")), "");
  EXPECT_EQ(chosen(all[0]), "a");
  all = {waits('w', "a"), runs(1, "a")};
  EXPECT_EQ(hosts.room_left(all), 1U);
  EXPECT_EQ(chosen(runs(9, "")), "a");
}

TEST_F(HostsTest, AServerWhoseHostIsGoneHasRoomOnSomeOther) {
  hosts.up(host("a", 0, 3));
  hosts.up(host("b", 1, 3));
  hosts.down("b:7700");
  const auto wait = [](std::uint32_t index, WorkerProcess::Standing standing) {
    return WorkerProcess::wait({WorkerId{'s', index}, "b:7700", 1}, Attempt{2}, standing);
  };
  all = {wait(0, WorkerProcess::Standing::kOfGroup), runs(1, "a")};
  EXPECT_EQ(hosts.room_left(all), 1U);
  all.push_back(wait(1, WorkerProcess::Standing::kMovesIn));
  EXPECT_EQ(hosts.room_left(all), 1U) << "the job goes on without it";
  all.push_back(wait(2, WorkerProcess::Standing::kOfGroup));
  all.push_back(wait(3, WorkerProcess::Standing::kOfGroup));
  EXPECT_EQ(hosts.room_left(all), 0U);
}

TEST_F(HostsTest, AHostThatFailsOftenIsOnProbationUntilItsFailuresDecayed) {
  hosts.up(host("a", 0, 2));
  hosts.up(host("b", 1, 2));
  for (int i = 0; i < 4; ++i) hosts.failed_on("a:7700", 0);
  EXPECT_TRUE(hosts.on_probation(*hosts.named("a"), 0));
  EXPECT_EQ(chosen(runs(0, "a")), "b");
  EXPECT_EQ(chosen(runs(0, "a"), 0, {"b:7700"}), "a") << "better than nowhere";
  const double later = Hosts::kHalfLifeSeconds;
  EXPECT_FALSE(hosts.on_probation(*hosts.named("a"), later));
  EXPECT_NEAR(hosts.penalty(*hosts.named("a"), later), 2, 1e-9);
  EXPECT_EQ(chosen(runs(0, "a"), later), "a");
}

TEST_F(HostsTest, AClosedHostStaysClosedWhenItsAgentComesBack) {
  hosts.up(host("a", 0, 2));
  hosts.close("a:7700");
  hosts.down("a:7700");
  hosts.up(host("a", 0, 2));
  EXPECT_TRUE(hosts.named("a")->up);
  EXPECT_EQ(chosen(runs(0, "a")), "");
}

TEST_F(HostsTest, AHostIsFoundByNameAndByEndPoint) {
  hosts.up(host("a", 0, 2));
  EXPECT_EQ(hosts.named("a"), hosts.named("a:7700"));
  EXPECT_EQ(hosts.named("z"), nullptr);
}

}  // namespace
}  // namespace antdt::ctl
