// Tests of servers with two processes: their roles, and the messages after one is lost.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ctl/servers/server_group.h"
#include "tests/ctl/servers/server_effects.h"

namespace antdt::ctl {
namespace {

using namespace servers;
using testing::all;

Member server(std::uint32_t index, std::uint32_t attempt = 1) {
  return {WorkerId{'s', index}, Attempt{attempt}};
}
Member worker(std::uint32_t index) { return {WorkerId{'w', index}, Attempt{1}}; }
std::string at(Member m) { return fmt::format("/run/{}.{}", m.worker, m.attempt); }

// Two servers, s0 with its backup s2 and s1 with s3, and one worker.
class ServerGroupReplicasTest : public ::testing::Test {
 protected:
  servers::Effects step(const servers::Input& event) {
    now += std::chrono::milliseconds(1);
    servers::Effects effects;
    group.step(event, now, effects);
    for (const SendServe& e : all<SendServe>(effects)) {
      told[e.to] = e.serve;
      reads[e.to] = e.reads;
    }
    return effects;
  }
  servers::Effects joins(Member m) {
    return step(GroupJoinRequested{m, at(m), fmt::format("key of {}", at(m)), {}});
  }
  servers::Effects serves(Member m) {
    return step(ServeAnswered{m, group.generation(), {told.at(m).number, {}}});
  }
  // The primary reports the view in which the other process has reached its own state.
  servers::Effects backs(Member m, std::uint64_t view) {
    return step(ServeAnswered{m, group.generation(), {told.at(m).number, {}, view}});
  }
  // The process starts again as a new attempt, beside the others.
  void comes_back(Member m) {
    std::vector<Member> all{m};
    for (std::uint32_t i = 0; i < 4; ++i) {
      if (i != m.worker.index) all.push_back(server(i));
    }
    step(ProcessesExpected{all, {worker(0)}});
    joins(m);
  }
  void form() {
    const std::vector<Member> all = {server(0), server(1), server(2), server(3)};
    step(ProcessesExpected{all, {worker(0)}});
    for (const Member m : all) joins(m);
    joins(worker(0));
    for (const Member m : all) serves(m);
    ASSERT_TRUE(group.serving());
  }

  ServerGroup group{{2, SyncStrategy::kPsBsp, 0, std::chrono::seconds(120), 2}};
  MonoTime now{};
  std::map<Member, wire::PsServe> told;  // the newest order to each
  std::map<Member, bool> reads;          // whether each must read, according to that order
};

TEST_F(ServerGroupReplicasTest, EachHearsWhichOfTheTwoItIsAndWhereTheOtherOneIs) {
  form();
  const std::vector<std::string> primaries = {at(server(0)), at(server(1))};
  for (const auto& [m, serve] : told) EXPECT_EQ(serve.servers, primaries) << at(m);
  EXPECT_EQ(told[server(1)].replica, wire::ReplicaRole::kPrimary);
  EXPECT_EQ(told[server(1)].other, at(server(3)));
  EXPECT_EQ(told[server(3)].replica, wire::ReplicaRole::kBackup);
  EXPECT_EQ(told[server(3)].index, 1U);
  EXPECT_EQ(told[server(3)].other_key, "key of " + at(server(1)));
  EXPECT_EQ(told[server(3)].view, 1U);
  EXPECT_EQ(group.roster().others, (std::vector{at(server(2)), at(server(3))}));
}

TEST_F(ServerGroupReplicasTest, ALostPrimaryIsReplacedInTheNextViewAndNobodyGoesBack) {
  form();
  const auto effects = step(GroupMemberLost{server(0), "was killed"});
  EXPECT_TRUE(group.serving());
  EXPECT_TRUE(all<DissolveGroup>(effects).empty());
  const auto switched = all<ReportSwitch>(effects);
  ASSERT_EQ(switched.size(), 1U);
  EXPECT_TRUE(switched[0].promoted);
  EXPECT_EQ(switched[0].alone, server(2));
  EXPECT_EQ(told[server(2)].view, 2U);
  EXPECT_EQ(told[server(2)].replica, wire::ReplicaRole::kAlone);
  EXPECT_EQ(told[server(1)].servers, (std::vector{at(server(2)), at(server(1))}));
  EXPECT_EQ(told[server(1)].view, 1U) << "the other server is as it was";
  EXPECT_EQ(group.roster().others, (std::vector{std::string(), at(server(3))}));
}

TEST_F(ServerGroupReplicasTest, ALostBackupIsDoneWithoutAndWhatComesBackJoins) {
  form();
  step(GroupMemberLost{server(2), "was killed"});
  EXPECT_EQ(told[server(0)].view, 2U);
  EXPECT_EQ(told[server(0)].replica, wire::ReplicaRole::kAlone);
  comes_back(server(2, 2));
  EXPECT_EQ(group.placement().role_of(server(2, 2)), ServerRole::kJoining);
  EXPECT_EQ(told[server(2, 2)].replica, wire::ReplicaRole::kJoining);
  EXPECT_EQ(told[server(2, 2)].view, 3U);
  EXPECT_EQ(told[server(2, 2)].other, at(server(0)));
  EXPECT_EQ(told[server(0)].replica, wire::ReplicaRole::kPrimary);
  EXPECT_EQ(told[server(0)].view, 3U);
  EXPECT_EQ(told[server(0)].other, at(server(2, 2)));
  EXPECT_EQ(group.roster().others[0], "") << "workers are not to ask it yet";
}

TEST_F(ServerGroupReplicasTest, ItIsTheBackupOnceThePrimaryReportsThatInItsView) {
  form();
  step(GroupMemberLost{server(0), "was killed"});
  comes_back(server(0, 2));
  EXPECT_TRUE(all<ReportBackup>(backs(server(2), 2)).empty()) << "said in the view before";
  EXPECT_TRUE(all<ReportBackup>(backs(server(0, 2), 3)).empty()) << "it cannot say so itself";
  EXPECT_EQ(group.placement().role_of(server(0, 2)), ServerRole::kJoining);
  const auto effects = backs(server(2), 3);
  ASSERT_EQ(all<ReportBackup>(effects).size(), 1U);
  EXPECT_TRUE(std::holds_alternative<PersistGroup>(effects[1])) << "journaled before it is used";
  ASSERT_EQ(all<SendRosters>(effects).size(), 1U);
  EXPECT_EQ(all<SendRosters>(effects)[0].workers, std::vector{worker(0)});
  EXPECT_EQ(group.placement().role_of(server(0, 2)), ServerRole::kBackup);
  EXPECT_EQ(group.placement().role_of(server(2)), ServerRole::kPrimary);
  EXPECT_EQ(group.roster().others[0], at(server(0, 2)));
  // The process may be promoted now.
  const auto switched = all<ReportSwitch>(step(GroupMemberLost{server(2), "was killed"}));
  ASSERT_EQ(switched.size(), 1U);
  EXPECT_EQ(switched[0].alone, server(0, 2));
  EXPECT_EQ(told[server(0, 2)].view, 4U);
  EXPECT_TRUE(group.serving());
}

TEST_F(ServerGroupReplicasTest, OneThatJoinsIsNeverPromotedAndItsLossCostsNothing) {
  form();
  step(GroupMemberLost{server(2), "was killed"});
  comes_back(server(2, 2));
  const auto lost = step(GroupMemberLost{server(2, 2), "was killed"});
  EXPECT_TRUE(all<DissolveGroup>(lost).empty());
  EXPECT_TRUE(all<ReportSwitch>(lost).empty());
  EXPECT_EQ(told[server(0)].view, 4U);
  EXPECT_EQ(told[server(0)].replica, wire::ReplicaRole::kAlone);
  EXPECT_TRUE(all<ReportBackup>(backs(server(0), 3)).empty()) << "it says so of one that is lost";
  comes_back(server(2, 3));
  EXPECT_EQ(told[server(2, 3)].view, 5U);
  const auto over = step(GroupMemberLost{server(0), "was killed"});
  EXPECT_EQ(all<DissolveGroup>(over).size(), 1U) << "nobody else has all of its rows";
}

TEST_F(ServerGroupReplicasTest, APrimaryIsAskedUntilItIsBackedAndWorkersAreToldAgain) {
  form();
  step(GroupMemberLost{server(2), "was killed"});
  comes_back(server(2, 2));
  for (const Member m : {server(0), server(1), server(2, 2), server(3)}) serves(m);
  now += std::chrono::seconds(3);
  const auto asked = step(servers::TimePassed{});
  ASSERT_EQ(all<SendServe>(asked).size(), 1U);
  EXPECT_EQ(all<SendServe>(asked)[0].to, server(0));
  EXPECT_EQ(all<SendRosters>(asked).size(), 1U) << "one may have been lost";
  EXPECT_TRUE(all<SendRosters>(step(servers::TimePassed{})).empty());
}

TEST_F(ServerGroupReplicasTest, ThatOneJoinsIsKnownToTheNextIncarnation) {
  form();
  step(GroupMemberLost{server(2), "was killed"});
  comes_back(server(2, 2));
  const ServerGroupImage image = group.image();
  group = ServerGroup({2, SyncStrategy::kPsBsp, 0, std::chrono::seconds(120), 2});
  group.restore(image, Generation{});
  step(ProcessesExpected{{server(0), server(1), server(2, 2), server(3)}, {worker(0)}});
  told.clear();
  now += std::chrono::seconds(3);
  step(servers::TimePassed{});
  EXPECT_EQ(told[server(2, 2)].replica, wire::ReplicaRole::kJoining);
  EXPECT_EQ(told[server(2, 2)].view, 3U);
  EXPECT_EQ(all<ReportBackup>(backs(server(0), 3)).size(), 1U);
  ServerGroupImage both = image;
  both.replica_sets[0].backup = both.replica_sets[0].joining;
  group.restore(both, Generation{});
  EXPECT_FALSE(group.serving()) << "one is the backup, or joins";
}

TEST_F(ServerGroupReplicasTest, TheViewIsKnownToTheNextIncarnation) {
  form();
  step(GroupMemberLost{server(0), "was killed"});
  const ServerGroupImage image = group.image();
  group = ServerGroup({2, SyncStrategy::kPsBsp, 0, std::chrono::seconds(120), 2});
  group.restore(image, Generation{});
  step(ProcessesExpected{{server(1), server(2), server(3)}, {worker(0)}});
  told.clear();
  now += std::chrono::seconds(3);
  step(servers::TimePassed{});
  EXPECT_EQ(told[server(2)].view, 2U);
  EXPECT_EQ(told[server(2)].replica, wire::ReplicaRole::kAlone);
  EXPECT_EQ(told[server(3)].replica, wire::ReplicaRole::kBackup);
  EXPECT_TRUE(group.serving());
}

TEST_F(ServerGroupReplicasTest, AJournalWithImpossibleReplicaSetsGoesBackToACheckpoint) {
  form();
  ServerGroupImage image = group.image();
  image.replica_sets[0].primary = WorkerId{'s', 8};
  group = ServerGroup({2, SyncStrategy::kPsBsp, 0, std::chrono::seconds(120), 2});
  group.restore(image, Generation{});
  EXPECT_FALSE(group.serving());
}

TEST_F(ServerGroupReplicasTest, ABackupReadsTheCheckpointAndOneThatJoinsIsGivenTheRows) {
  form();
  step(GroupMemberLost{server(0), "was killed"});
  step(GroupMemberLost{server(2), "was killed"});
  step(ProcessesExpected{{server(0, 2), server(1), server(2, 2), server(3)}, {worker(0)}});
  for (const Member m : {server(0, 2), server(2, 2), worker(0)}) joins(m);
  step(servers::RestoreChosen{"/c/s9", 9});
  for (const Member m : {server(0, 2), server(1), server(2, 2), server(3)}) {
    EXPECT_TRUE(reads[m]) << to_string(m.worker);
  }
  for (const Member m : {server(0, 2), server(1), server(2, 2), server(3)}) serves(m);
  ASSERT_TRUE(group.serving());
  step(GroupMemberLost{server(2, 2), "was killed"});
  step(ProcessesExpected{{server(0, 2), server(1), server(2, 3), server(3)}, {worker(0)}});
  joins(server(2, 3));
  EXPECT_EQ(told[server(2, 3)].replica, wire::ReplicaRole::kJoining);
  EXPECT_EQ(told[server(2, 3)].restore, "/c/s9");
  EXPECT_FALSE(reads[server(2, 3)]);
}

TEST_F(ServerGroupReplicasTest, ACheckpointThatALostPrimaryWasWritingIsGivenUp) {
  form();
  const auto ordered = all<SendCut>(step(CutOrdered{1}));
  ASSERT_EQ(ordered.size(), 2U) << "the primaries write it";
  EXPECT_EQ(ordered[1].to, server(1));
  const auto done = all<ConcludeCut>(step(GroupMemberLost{server(1), "was killed"}));
  ASSERT_EQ(done.size(), 1U);
  EXPECT_NE(done[0].error, "");
  EXPECT_EQ(all<SendCut>(step(CutOrdered{2})).back().to, server(3));
}

}  // namespace
}  // namespace antdt::ctl
