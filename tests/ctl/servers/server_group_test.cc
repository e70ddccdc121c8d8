#include "ctl/servers/server_group.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>

#include "tests/ctl/servers/server_effects.h"

namespace antdt::ctl {
namespace {

using namespace servers;
using testing::all;

// Two servers and two workers; the test decides when servers answer.
class ServerGroupTest : public ::testing::Test {
 protected:
  static Member s(std::uint32_t index, std::uint32_t attempt = 1) {
    return {WorkerId{'s', index}, Attempt{attempt}};
  }
  static Member w(std::uint32_t index, std::uint32_t attempt = 1) {
    return {WorkerId{'w', index}, Attempt{attempt}};
  }

  servers::Effects step(const servers::Input& event) {
    now += std::chrono::milliseconds(1);
    servers::Effects effects;
    group.step(event, now, effects);
    seen.insert(seen.end(), effects.begin(), effects.end());
    return effects;
  }
  servers::Effects joins(Member m) {
    return step(
        GroupJoinRequested{m, m.worker.role == 's' ? "/run/" + to_string(m.worker) : "", key(m)});
  }
  static std::string key(Member m) { return fmt::format("key of {}.{}", m.worker, m.attempt); }
  // The processes whose keys a server receives.
  static std::vector<Member> named(const SendServe& said) {
    std::vector<Member> members;
    for (const wire::PsKey& k : said.serve.keys) {
      members.push_back({k.worker, k.attempt});
      EXPECT_EQ(k.key, key(members.back()));
    }
    return members;
  }
  servers::Effects serves(Member server, std::uint64_t number,
                          std::vector<wire::PsPlaces> left = {}) {
    return step(ServeAnswered{server, group.generation(), {number, std::move(left)}});
  }
  void expect(std::vector<Member> servers, std::vector<Member> workers) {
    step(ProcessesExpected{std::move(servers), std::move(workers)});
  }
  void form() {
    expect({s(0), s(1)}, {w(0), w(1)});
    for (const Member m : {w(0), s(0), w(1), s(1)}) joins(m);
    serves(s(0), 1);
    serves(s(1), 1);
    ASSERT_TRUE(group.serving());
  }
  std::uint64_t number() {
    std::uint64_t newest = 0;
    for (const auto& e : all<SendServe>(seen)) newest = std::max(newest, e.serve.number);
    return newest;
  }

  ServerGroup group{{2, SyncStrategy::kPsBsp, 0}};
  MonoTime now{};
  servers::Effects seen;
};

TEST_F(ServerGroupTest, BeginsWhenAllHaveJoinedAndServesWhenAllServersSaySo) {
  expect({s(0), s(1)}, {w(0), w(1)});
  joins(w(0));
  joins(s(0));
  joins(s(1));
  EXPECT_TRUE(all<SendServe>(seen).empty()) << "w1 is missing";
  EXPECT_EQ(group.waiting_for(), "w1 to join");
  const auto told = all<SendServe>(joins(w(1)));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[1].serve.index, 1U);
  EXPECT_EQ(told[1].serve.servers, (std::vector<std::string>{"/run/s0", "/run/s1"}));
  EXPECT_EQ(told[1].serve.workers.size(), 2U);
  EXPECT_EQ(told[1].generation, Generation{1});
  EXPECT_TRUE(all<OpenGroup>(serves(s(0), 1)).empty());
  const auto formed = all<OpenGroup>(serves(s(1), 1));
  ASSERT_EQ(formed.size(), 1U);
  EXPECT_EQ(formed[0].workers, (std::vector{w(0), w(1)}));
}

TEST_F(ServerGroupTest, ServersHearTheKeysOfThoseWhoAreInTheGroupAndOfNobodyElse) {
  form();
  EXPECT_EQ(named(all<SendServe>(seen).back()), (std::vector{s(0), s(1), w(0), w(1)}));
  EXPECT_EQ(group.roster().keys, (std::vector{key(s(0)), key(s(1))}));
  expect({s(0), s(1)}, {w(0)});
  EXPECT_EQ(named(all<SendServe>(step(GroupMemberLost{w(1), "was killed"}))[0]),
            (std::vector{s(0), s(1), w(0)}))
      << "who has left is let in no more";
  expect({s(0), s(1)}, {w(0), w(1, 2)});
  EXPECT_EQ(named(all<SendServe>(joins(w(1, 2)))[0]), (std::vector{s(0), s(1), w(0), w(1, 2)}));
}

TEST_F(ServerGroupTest, TheNextIncarnationKnowsTheKeys) {
  form();
  const ServerGroupImage image = group.image();
  group = ServerGroup({2, SyncStrategy::kPsBsp, 0});
  group.restore(image, Generation{});
  expect({s(0), s(1)}, {w(0), w(1)});
  seen.clear();
  now += std::chrono::seconds(3);
  step(servers::TimePassed{});
  ASSERT_FALSE(all<SendServe>(seen).empty());
  EXPECT_EQ(named(all<SendServe>(seen)[0]), (std::vector{s(0), s(1), w(0), w(1)}));
  EXPECT_EQ(group.roster().keys, (std::vector{key(s(0)), key(s(1))}));
}

TEST_F(ServerGroupTest, DoesNotBeginWithFewerServersThanTheJobHas) {
  expect({s(0)}, {w(0)});
  joins(s(0));
  joins(w(0));
  EXPECT_TRUE(all<SendServe>(seen).empty());
}

TEST_F(ServerGroupTest, SaysAgainWhatAServerHasNotHeard) {
  expect({s(0), s(1)}, {w(0)});
  for (const Member m : {w(0), s(0), s(1)}) joins(m);
  serves(s(0), 1);
  now += std::chrono::seconds(1);
  const auto again = all<SendServe>(step(servers::TimePassed{}));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].to, s(1));
  EXPECT_EQ(all<SendServe>(step(servers::TimePassed{})).size(), 0U) << "not every turn";
}

TEST_F(ServerGroupTest, ANewcomerIsAdmittedWhenEveryServerKnowsIt) {
  form();
  expect({s(0), s(1)}, {w(0), w(1), w(2)});
  const auto told = all<SendServe>(joins(w(2)));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].serve.workers.size(), 3U);
  const std::uint64_t n = told[0].serve.number;
  EXPECT_TRUE(all<AdmitWorker>(serves(s(1), n)).empty());
  const auto admitted = all<AdmitWorker>(serves(s(0), n));
  ASSERT_EQ(admitted.size(), 1U);
  EXPECT_EQ(admitted[0].worker, w(2));
  EXPECT_EQ(all<AdmitWorker>(joins(w(2))).size(), 1U) << "it asks again: its orders were lost";
}

TEST_F(ServerGroupTest, ALostWorkersRecordsAreFreeOnlyWhenItsHomeHasSpoken) {
  form();
  expect({s(0), s(1)}, {w(0)});
  const auto told = all<SendServe>(step(GroupMemberLost{w(1), "was killed"}));
  ASSERT_EQ(told.size(), 2U);
  ASSERT_EQ(told[0].serve.leaving.size(), 1U);
  EXPECT_EQ(told[0].serve.workers.size(), 1U);
  expect({s(0), s(1)}, {w(0), w(1, 2)});
  joins(w(1, 2));
  const std::uint64_t n = number();
  serves(s(1), n);
  EXPECT_TRUE(all<AdmitWorker>(seen).empty()) << "its predecessor's places are not known";
  const wire::PsPlaces places{w(1).worker, Attempt{1}, 1, {{0, 30}}};
  const auto after = serves(s(0), n, {places});
  const auto left = all<SettleLeaver>(after);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].places.applied[0].to, 30U);
  ASSERT_EQ(all<AdmitWorker>(after).size(), 1U);
  EXPECT_EQ(all<SettleLeaver>(serves(s(0), n, {places})).size(), 0U) << "once";
}

TEST_F(ServerGroupTest, ASuccessorWaitsForThePredecessorsPlacesHoweverOftenServersAnswer) {
  form();
  step(GroupMemberLost{w(1), "was killed"});
  expect({s(0), s(1)}, {w(0), w(1, 2)});
  joins(w(1, 2));
  serves(s(0), number());  // its answer lacks the places of the lost worker
  serves(s(1), number());
  EXPECT_TRUE(all<AdmitWorker>(seen).empty());
}

TEST_F(ServerGroupTest, ALostServerEndsTheGroupAndAsksForACheckpoint) {
  form();
  const auto over = all<DissolveGroup>(step(GroupMemberLost{s(1), "was killed"}));
  ASSERT_EQ(over.size(), 1U);
  EXPECT_EQ(over[0].workers, (std::vector{w(0), w(1)}));
  expect({s(0), s(1, 2)}, {w(0), w(1)});
  joins(w(0));
  joins(s(1, 2));
  EXPECT_TRUE(all<ChooseRestore>(seen).empty()) << "w1 has not come back";
  EXPECT_EQ(all<ChooseRestore>(joins(w(1))).size(), 1U);
  EXPECT_TRUE(all<ChooseRestore>(step(servers::TimePassed{})).empty()) << "once";
  const auto told = all<SendServe>(step(servers::RestoreChosen{"/c/s9", 9}));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].generation, Generation{2});
  EXPECT_EQ(told[0].serve.number, 1U);
  EXPECT_EQ(told[0].serve.restore, "/c/s9");
  EXPECT_EQ(told[0].serve.version, 9U);
  EXPECT_FALSE(told[0].serve.keep) << "all go back to one cut";
}

TEST_F(ServerGroupTest, AServerReadsTheCheckpointOnceItHasHeardOfTheGroup) {
  form();
  step(GroupMemberLost{s(1), "was killed"});
  expect({s(0), s(1, 2)}, {w(0), w(1)});
  for (const Member m : {w(0), w(1), s(1, 2)}) joins(m);
  for (const SendServe& told : all<SendServe>(step(servers::RestoreChosen{"/c/s9", 9}))) {
    EXPECT_TRUE(told.reads) << to_string(told.to.worker);
  }
  serves(s(0), 1);
  // s1 has not answered yet, and both hear that a worker is lost.
  const auto again = all<SendServe>(step(GroupMemberLost{w(1), "was killed"}));
  ASSERT_EQ(again.size(), 2U);
  EXPECT_FALSE(again[0].reads) << "it has the checkpoint on its host already";
  EXPECT_TRUE(again[1].reads);
  serves(s(0), 2);
  serves(s(1, 2), 2);
  ASSERT_TRUE(group.serving());
  for (const SendServe& told : all<SendServe>(joins(w(2)))) {
    EXPECT_EQ(told.serve.restore, "/c/s9");
    EXPECT_FALSE(told.reads) << to_string(told.to.worker);
  }
}

TEST_F(ServerGroupTest, AServerOfAGroupThatServesReadsNothingThoughTheJobDaemonBeganAnew) {
  form();
  step(GroupMemberLost{s(1), "was killed"});
  expect({s(0), s(1, 2)}, {w(0), w(1)});
  for (const Member m : {w(0), w(1), s(1, 2)}) joins(m);
  step(servers::RestoreChosen{"/c/s9", 9});
  const ServerGroupImage forming = group.image();
  for (const Member m : {s(0), s(1, 2)}) serves(m, 1);
  ASSERT_TRUE(group.serving());
  const ServerGroupImage serving = group.image();
  for (const bool served : {false, true}) {
    group = ServerGroup({2, SyncStrategy::kPsBsp, 0});
    group.restore(served ? serving : forming, Generation{});
    expect({s(0), s(1, 2)}, {w(0), w(1)});
    now += std::chrono::seconds(3);
    const auto told = all<SendServe>(step(servers::TimePassed{}));
    ASSERT_EQ(told.size(), 2U);
    for (const SendServe& t : told) EXPECT_EQ(t.reads, !served);
  }
}

TEST_F(ServerGroupTest, AGroupThatNeverServedLosesNothing) {
  expect({s(0), s(1)}, {w(0), w(1)});
  for (const Member m : {w(0), s(0), w(1), s(1)}) joins(m);
  serves(s(0), 1);
  EXPECT_TRUE(all<DissolveGroup>(step(GroupMemberLost{s(1), "was killed"})).empty())
      << "no worker was told of it";
  expect({s(0), s(1, 2)}, {w(0), w(1)});
  const auto told = all<SendServe>(joins(s(1, 2)));
  ASSERT_EQ(told.size(), 2U) << "the workers need not join again";
  EXPECT_EQ(told[0].generation, Generation{2});
  EXPECT_TRUE(all<ChooseRestore>(seen).empty());
}

TEST_F(ServerGroupTest, AServerThatBeganAnewEndsTheGroupBeforeItsEndIsHeardOf) {
  form();
  expect({s(0, 2), s(1)}, {w(0), w(1)});
  EXPECT_EQ(all<DissolveGroup>(joins(s(0, 2))).size(), 1U);
  EXPECT_TRUE(all<DissolveGroup>(step(GroupMemberLost{s(0), "was killed"})).empty());
}

// Servers that have read a checkpoint, and find it damaged.
class DamageGroupTest : public ServerGroupTest {
 protected:
  DamageGroupTest() {
    form();
    step(GroupMemberLost{s(1), "was killed"});
    expect({s(0), s(1, 2)}, {w(0), w(1)});
    for (const Member m : {w(0), w(1), s(1, 2)}) joins(m);
  }
  void begin_from(const std::string& checkpoint) {
    step(servers::RestoreChosen{checkpoint, 9});
    for (const Member m : {s(0), s(1, 2)}) serves(m, 1);
    ASSERT_TRUE(group.serving());
    now += std::chrono::seconds(10);
  }
  servers::Effects damage_is_found() {
    return step(GroupJoinRequested{w(1), "", key(w(1)), "s1 on b: slice-01.rows is damaged",
                                   servers::Trouble::kCheckpoint});
  }
};

TEST_F(DamageGroupTest, ADamagedCheckpointIsAskedForOnceMoreAndThenItsDamageCounts) {
  for (const std::string checkpoint : {"/c/s9", "/c/s8"}) {
    begin_from(checkpoint);
    const auto over = damage_is_found();
    EXPECT_EQ(all<DissolveGroup>(over).size(), 1U);
    EXPECT_TRUE(all<ReportTrouble>(over).empty()) << "the launching host's copy may be good";
    const auto asks = all<ChooseRestore>(joins(w(0)));
    ASSERT_EQ(asks.size(), 1U);
    EXPECT_EQ(asks[0].unread, "servers cannot read the checkpoint " + checkpoint +
                                  ": s1 on b: slice-01.rows is damaged");
    EXPECT_EQ(asks[0].checkpoint, checkpoint);
    EXPECT_TRUE(asks[0].damaged);
  }
  begin_from("/c/s8");
  const auto again = damage_is_found();
  ASSERT_EQ(all<ReportTrouble>(again).size(), 1U);
  EXPECT_EQ(all<ReportTrouble>(again)[0].trouble, servers::Trouble::kCheckpoint);
  EXPECT_FALSE(all<ReportTrouble>(again)[0].last);
  EXPECT_TRUE(group.serving());
}

// As when the run is resumed: a copy may have been mended since then.
TEST_F(DamageGroupTest, TheNextIncarnationAsksOnceMoreToo) {
  begin_from("/c/s9");
  damage_is_found();
  joins(w(0));
  begin_from("/c/s9");
  const ServerGroupImage image = group.image();
  group = ServerGroup({2, SyncStrategy::kPsBsp, 0});
  group.restore(image, Generation{});
  expect({s(0), s(1, 2)}, {w(0), w(1)});
  step(servers::TimePassed{});
  for (const Member m : {s(0), s(1, 2)}) serves(m, number());
  damage_is_found();
  const auto asks = all<ChooseRestore>(joins(w(0)));
  ASSERT_EQ(asks.size(), 1U);
  EXPECT_TRUE(asks[0].damaged);
}

class KeepingGroupTest : public ServerGroupTest {
 protected:
  KeepingGroupTest() { group = ServerGroup(config()); }
  static ServerGroupConfig config() {
    ServerGroupConfig c{2, SyncStrategy::kPsAsp, 0};
    c.keeps_rows = true;
    return c;
  }
  // s1 was killed, and all have come back.
  void lose_one() {
    form();
    step(GroupMemberLost{s(1), "was killed"});
    expect({s(0), s(1, 2)}, {w(0), w(1)});
    for (const Member m : {w(0), w(1), s(1, 2)}) joins(m);
    ASSERT_EQ(all<ChooseRestore>(seen).size(), 1U);
    seen.clear();
  }
};

TEST_F(KeepingGroupTest, TheRemainingServersGoOnWithTheirRows) {
  lose_one();
  EXPECT_EQ(group.keepers(), std::vector{s(0)});
  const auto told = all<SendServe>(step(servers::RestoreChosen{"/c/s9", 9}));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_TRUE(told[0].serve.keep);
  EXPECT_FALSE(told[0].reads);
  EXPECT_FALSE(told[1].serve.keep);
  EXPECT_EQ(told[1].serve.restore, "/c/s9");
  EXPECT_TRUE(told[1].reads);
}

TEST_F(KeepingGroupTest, WhatAServerCannotReadJustNowIsChosenAgainAndAllServersReadIt) {
  lose_one();
  step(servers::RestoreChosen{"/c/s9", 9});
  serves(s(0), 1);
  serves(s(1, 2), 1);
  ASSERT_TRUE(group.serving());
  seen.clear();
  step(GroupJoinRequested{w(1), "", key(w(1)), "s1 on b: slice-01.rows: Stale file handle",
                          servers::Trouble::kDisk});
  EXPECT_EQ(all<DissolveGroup>(seen).size(), 1U);
  EXPECT_TRUE(all<ChooseRestore>(seen).empty()) << "w0 has not joined again";
  const auto asks = all<ChooseRestore>(joins(w(0)));
  ASSERT_EQ(asks.size(), 1U);
  EXPECT_EQ(asks[0].unread,
            "servers cannot read the checkpoint /c/s9: s1 on b: slice-01.rows: Stale file "
            "handle");
  EXPECT_FALSE(asks[0].damaged);
  EXPECT_TRUE(group.keepers().empty()) << "the checkpoint holds for all";
  EXPECT_EQ(group.waiting_for(), "the checkpoint from which training goes on");
  for (const SendServe& told : all<SendServe>(step(servers::RestoreChosen{"/c/s9", 9}))) {
    EXPECT_FALSE(told.serve.keep);
    EXPECT_TRUE(told.reads);
  }
}

TEST_F(KeepingGroupTest, TheNextIncarnationKnowsWhichServersKeepWhichRows) {
  lose_one();
  const ServerGroupImage image = group.image();
  group = ServerGroup(config());
  group.restore(image, Generation{});
  expect({s(0), s(1, 2)}, {w(0), w(1)});
  EXPECT_EQ(group.keepers(), std::vector{s(0)});
}

TEST_F(KeepingGroupTest, ALossBeforeServingChoosesTheRestoreAnew) {
  lose_one();
  step(servers::RestoreChosen{"/c/s9", 9});
  seen.clear();
  step(GroupMemberLost{s(0), "was killed"});
  EXPECT_TRUE(group.keepers().empty());
  expect({s(0, 2), s(1, 2)}, {w(0), w(1)});
  joins(s(0, 2));
  EXPECT_EQ(all<ChooseRestore>(seen).size(), 1U) << "now all have what the checkpoint has";
  for (const SendServe& told : all<SendServe>(step(servers::RestoreChosen{"/c/s9", 9}))) {
    EXPECT_FALSE(told.serve.keep);
  }
}

TEST_F(KeepingGroupTest, AnEmptyServerLostBeforeServingChangesNothing) {
  lose_one();
  step(servers::RestoreChosen{"/c/s9", 9});
  step(GroupMemberLost{s(1, 2), "was killed"});
  expect({s(0), s(1, 3)}, {w(0), w(1)});
  seen.clear();
  const auto told = all<SendServe>(joins(s(1, 3)));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_TRUE(told[0].serve.keep);
  EXPECT_FALSE(told[1].serve.keep);
}

TEST_F(KeepingGroupTest, AServerThatBeganAnewKeepsNoRows) {
  form();
  expect({s(0, 2), s(1)}, {w(0), w(1)});
  joins(s(0, 2));
  EXPECT_EQ(group.keepers(), std::vector{s(1)});
}

TEST_F(ServerGroupTest, AMessageOfAnotherGenerationChangesNothing) {
  form();
  step(GroupMemberLost{w(1), "was killed"});
  const wire::PsPlaces places{w(1).worker, Attempt{1}, 1, {{0, 30}}};
  EXPECT_TRUE(step(ServeAnswered{s(0), Generation{7}, {number(), {places}}}).empty());
  EXPECT_TRUE(all<SettleLeaver>(seen).empty());
}

TEST_F(ServerGroupTest, ACheckpointIsDoneWhenEveryServerHasWrittenTheSameState) {
  form();
  const auto orders = all<SendCut>(step(CutOrdered{3}));
  ASSERT_EQ(orders.size(), 2U);
  EXPECT_EQ(orders[0].cut.directory, "checkpoints/.tmp-3-g1");
  const auto saved = [&](Member server, std::uint64_t version, std::string error = {}) {
    wire::PsSaved said{3,  version,
                       40, {{"slice-0" + std::to_string(server.worker.index), 8, "x"}},
                       {}, std::move(error)};
    if (server == s(0)) said.places.push_back({w(0).worker, Attempt{1}, 1, {{0, 5}}});
    return all<ConcludeCut>(step(SlicesSaved{server, group.generation(), said}));
  };
  EXPECT_TRUE(saved(s(0), 12).empty());
  EXPECT_TRUE(saved(s(0), 12).empty()) << "said twice is said once";
  const auto done = saved(s(1), 12);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].error, "");
  EXPECT_EQ(done[0].version, 12U);
  EXPECT_EQ(done[0].files.size(), 2U);
  EXPECT_EQ(done[0].places.size(), 1U);
  EXPECT_TRUE(saved(s(1), 12).empty());

  step(CutOrdered{3});
  saved(s(0), 12);
  EXPECT_NE(saved(s(1), 13)[0].error, "") << "not one cut";
  step(CutOrdered{3});
  EXPECT_NE(saved(s(1), 13, "the disk is full")[0].error.find("s1: the disk is full"),
            std::string::npos);
}

TEST_F(ServerGroupTest, ACheckpointIsGivenUpWithTheWorkerOrTheServerThatIsLost) {
  form();
  step(CutOrdered{1});
  EXPECT_EQ(all<ConcludeCut>(step(GroupMemberLost{w(1), "was killed"})).size(), 1U);
  step(CutOrdered{2});
  const auto done = all<ConcludeCut>(step(GroupMemberLost{s(1), "was killed"}));
  ASSERT_EQ(done.size(), 1U);
  EXPECT_NE(done[0].error, "");
  EXPECT_EQ(all<ConcludeCut>(step(CutOrdered{3})).size(), 1U) << "nobody serves";
}

TEST_F(ServerGroupTest, ACutIsOrderedAgainFromServersThatHaveNotAnswered) {
  form();
  step(CutOrdered{1});
  step(SlicesSaved{s(0), group.generation(), {1, 4, 0, {}, {}, ""}});
  now += std::chrono::seconds(3);
  const auto again = all<SendCut>(step(servers::TimePassed{}));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].to, s(1));
}

TEST_F(ServerGroupTest, ACheckpointWaitsForTheAnswerOfAHomeAboutALeavingWorker) {
  form();
  step(GroupMemberLost{w(1), "was killed"});
  EXPECT_TRUE(all<SendCut>(step(CutOrdered{3})).empty())
      << "its home may decide more of w1 between the cut and its answer";
  now += std::chrono::seconds(3);
  EXPECT_TRUE(all<SendCut>(step(servers::TimePassed{})).empty());
  const wire::PsPlaces places{w(1).worker, Attempt{1}, 1, {{0, 30}}};
  serves(s(0), number(), {places});
  EXPECT_EQ(all<SendCut>(step(servers::TimePassed{})).size(), 2U);
  EXPECT_TRUE(all<SendCut>(step(servers::TimePassed{})).empty()) << "not every turn";
}

TEST_F(ServerGroupTest, AsksAgainAboutALeavingWorkerUntilItsHomeAnswers) {
  form();
  step(GroupMemberLost{w(1), "was killed"});
  serves(s(0), number());  // an answer to an older order, which named no worker
  serves(s(1), number());
  now += std::chrono::seconds(1);
  EXPECT_EQ(all<SendServe>(step(servers::TimePassed{})).size(), 2U);
  serves(s(0), number(), {{w(1).worker, Attempt{1}, 1, {}}});
  EXPECT_EQ(all<SettleLeaver>(seen).size(), 1U);
  now += std::chrono::seconds(1);
  EXPECT_TRUE(all<SendServe>(step(servers::TimePassed{})).empty());
}

TEST_F(ServerGroupTest, TheNextIncarnationAsksTheServersWhatTheyKnowAndGoesOn) {
  form();
  step(GroupMemberLost{w(1), "was killed"});
  step(CutOrdered{5});
  const ServerGroupImage image = group.image();
  group = ServerGroup({2, SyncStrategy::kPsBsp, 0});
  group.restore(image, Generation{});
  seen.clear();
  EXPECT_TRUE(group.serving());
  expect({s(0), s(1)}, {w(0)});
  now += std::chrono::seconds(3);
  step(servers::TimePassed{});
  EXPECT_EQ(all<SendServe>(seen).size(), 2U);
  const wire::PsPlaces places{w(1).worker, Attempt{1}, 1, {{0, 30}}};
  serves(s(0), number(), {places});
  serves(s(1), number());
  EXPECT_EQ(all<SettleLeaver>(seen).size(), 1U);
  ASSERT_EQ(all<AdmitWorker>(seen).size(), 1U) << "whether it was told is not known";
  EXPECT_EQ(group.workers().admitted(), std::vector{w(0)});
  step(servers::TimePassed{});
  EXPECT_EQ(all<SendCut>(seen).size(), 2U) << "the checkpoint is still wanted";
}

TEST_F(ServerGroupTest, AServerThatHasNotRejoinedHearsAgainThatItsGroupIsOver) {
  form();
  step(GroupMemberLost{s(1), "was killed"});
  expect({s(0), s(1, 2)}, {w(0), w(1)});
  joins(w(0));
  now += std::chrono::seconds(3);
  const auto again = all<RepeatDissolve>(step(servers::TimePassed{}));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].generation, Generation{1});
  EXPECT_EQ(again[0].workers, std::vector{w(1)});
  EXPECT_TRUE(all<RepeatDissolve>(step(servers::TimePassed{})).empty()) << "not every turn";
  joins(w(1));
  now += std::chrono::seconds(3);
  EXPECT_TRUE(all<RepeatDissolve>(step(servers::TimePassed{})).empty()) << "all have heard";
}

TEST_F(ServerGroupTest, AWorkerThatHasNoSuccessorIsNotWaitedFor) {
  form();
  step(GroupMemberLost{w(1), "was killed while the others finish"});
  step(GroupMemberLost{s(1), "was killed"});
  expect({s(0), s(1, 2)}, {w(0), w(1)});
  step(GroupMemberLost{w(1), "said again"});
  seen.clear();
  for (const Member m : {w(0), s(1, 2)}) joins(m);
  step(servers::TimePassed{});
  ASSERT_EQ(all<ChooseRestore>(seen).size(), 1U) << group.waiting_for();
  step(RestoreChosen{"l1", 7});
  ASSERT_EQ(all<SendServe>(seen).size(), 2U);
  EXPECT_EQ(all<SendServe>(seen)[0].serve.workers.size(), 1U);
}

TEST_F(ServerGroupTest, AServerThatKeepsTheOthersWaitingTooLongIsNamed) {
  expect({s(0), s(1)}, {w(0), w(1)});
  for (const Member m : {w(0), s(0), s(1)}) joins(m);
  now += std::chrono::seconds(100);
  EXPECT_TRUE(all<EndSilentMember>(step(servers::TimePassed{})).empty());
  now += std::chrono::seconds(30);
  const auto silent = all<EndSilentMember>(step(servers::TimePassed{}));
  ASSERT_EQ(silent.size(), 1U);
  EXPECT_EQ(silent[0].member, w(1));
  EXPECT_TRUE(all<EndSilentMember>(step(servers::TimePassed{})).empty()) << "it has its time anew";
  joins(w(1));
  serves(s(0), 1);
  now += std::chrono::seconds(130);
  const auto unanswered = all<EndSilentMember>(step(servers::TimePassed{}));
  ASSERT_EQ(unanswered.size(), 1U);
  EXPECT_EQ(unanswered[0].member, s(1)) << "it does not answer what it is to serve";
}

TEST_F(ServerGroupTest, AWorkerThatCannotBeginTriesAgainAndIsInTheEndGivenUp) {
  form();
  const GroupJoinRequested cannot{w(1), "", key(w(1)), "cannot read slices",
                                  servers::Trouble::kCheckpoint};
  for (int n = 1; n <= 5; ++n) {
    now += std::chrono::seconds(200);  // the server has read them again for each of many workers
    const auto effects = step(cannot);
    EXPECT_EQ(all<AdmitWorker>(effects).size(), 1U) << "it hears again where they are";
    ASSERT_EQ(all<ReportTrouble>(effects).size(), 1U);
    EXPECT_EQ(all<ReportTrouble>(effects)[0].problem, "cannot read slices");
    EXPECT_EQ(all<ReportTrouble>(effects)[0].trouble, servers::Trouble::kCheckpoint);
    EXPECT_EQ(all<ReportTrouble>(effects)[0].last, n == 5);
    const auto again = step(cannot);
    EXPECT_TRUE(all<ReportTrouble>(again).empty()) << "the same, said again";
    EXPECT_TRUE(all<AdmitWorker>(again).empty()) << "a server that refuses at once is not besieged";
  }
}

TEST_F(ServerGroupTest, AServerThatIsNotReachedDoesNotEndTheJobBeforeItsHostCanBeGivenUp) {
  ServerGroupConfig config{2, SyncStrategy::kPsBsp, 0};
  config.host_lost_after = std::chrono::seconds(100);
  group = ServerGroup(config);
  form();
  for (int n = 1; n <= 12; ++n) {
    now += std::chrono::seconds(10);
    const auto told = all<ReportTrouble>(
        step(GroupJoinRequested{w(1), "", key(w(1)), "cannot reach parameter server s1"}));
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].last, n >= 11) << n;
  }
}

TEST_F(ServerGroupTest, TroublesOfOtherHoursAreNotCountedTogether) {
  ServerGroupConfig config{2, SyncStrategy::kPsBsp, 0};
  config.host_lost_after = std::chrono::seconds(100);
  group = ServerGroup(config);
  form();
  for (int blip = 0; blip < 10; ++blip) {
    now += std::chrono::hours(1);
    for (int n = 0; n < 2; ++n) {
      now += std::chrono::seconds(10);
      const auto told = all<ReportTrouble>(
          step(GroupJoinRequested{w(1), "", key(w(1)), "cannot reach parameter server s1"}));
      ASSERT_EQ(told.size(), 1U);
      EXPECT_FALSE(told[0].last) << "its host may be silent for a moment only, as before";
    }
  }
}

TEST_F(ServerGroupTest, GenerationsOfAnEarlierJournalAreNotUsedAgain) {
  ServerGroup next({2, SyncStrategy::kPsBsp, 0});
  next.restore({}, Generation{8});
  group = std::move(next);
  form();
  EXPECT_EQ(group.generation(), Generation{9});
}

TEST_F(ServerGroupTest, TheFewestServersThatTheModelFitsAreKnownToTheNextIncarnation) {
  expect({s(0), s(1)}, {w(0), w(1)});
  EXPECT_EQ(group.fewest(), 0U);
  const auto told =
      step(GroupJoinRequested{w(0), "", key(w(0)), "", servers::Trouble::kServers, 2});
  EXPECT_FALSE(all<PersistGroup>(told).empty());
  joins(w(1));
  EXPECT_EQ(group.fewest(), 2U) << "a worker of an earlier release does not say it";
  ServerGroup next({2, SyncStrategy::kPsBsp, 0});
  next.restore(group.image(), Generation{});
  EXPECT_EQ(next.fewest(), 2U);
}

TEST_F(ServerGroupTest, EveryServerHearsOfOtherBackupsWhileItServes) {
  form();
  const auto told = all<SendServe>(step(TermsSet{1}));
  ASSERT_EQ(told.size(), 2U);
  for (const SendServe& t : told) EXPECT_EQ(t.serve.backups, 1U);
  EXPECT_TRUE(all<SendServe>(step(TermsSet{1})).empty()) << "that is no news";
  EXPECT_EQ(group.image().backups, 1U) << "the next incarnation knows it";
}

TEST_F(ServerGroupTest, EveryServerHearsOfAnotherLearningRate) {
  form();
  const auto told = all<SendServe>(step(TermsSet{{}, 0.5}));
  ASSERT_EQ(told.size(), 2U);
  for (const SendServe& t : told) EXPECT_EQ(t.serve.rate, 0.5);
  EXPECT_TRUE(all<SendServe>(step(TermsSet{{}, 0.5})).empty()) << "that is no news";
  EXPECT_EQ(group.image().rate, 0.5) << "the next incarnation knows it";
}

}  // namespace
}  // namespace antdt::ctl
