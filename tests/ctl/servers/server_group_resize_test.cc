// Tests of a group's last checkpoint, and of the group of another size that goes on from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ctl/servers/server_effects.h"

namespace antdt::ctl {
namespace {

using namespace servers;
using testing::all;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Member s(std::uint32_t index) { return {WorkerId{'s', index}, Attempt{1}}; }
Member w(std::uint32_t index) { return {WorkerId{'w', index}, Attempt{1}}; }

// Two servers and two workers that serve.
class ServerGroupResizeTest : public ::testing::Test {
 protected:
  void SetUp() override { form(group); }
  Effects step(const Input& event) { return step(group, event); }
  Effects step(ServerGroup& of, const Input& event) {
    Effects effects;
    now += std::chrono::milliseconds(1);
    of.step(event, now, effects);
    return effects;
  }
  void joins(ServerGroup& of, Member m) {
    step(of, GroupJoinRequested{m, m.worker.role == 's' ? "/run/" + to_string(m.worker) : ""});
  }
  void form(ServerGroup& of) {
    step(of, ProcessesExpected{{s(0), s(1)}, {w(0), w(1)}});
    for (const Member m : {w(0), s(0), w(1), s(1)}) joins(of, m);
    for (const Member m : {s(0), s(1)}) step(of, ServeAnswered{m, of.generation(), {1, {}}});
  }
  Effects serves(Member m, std::uint64_t number) {
    return step(ServeAnswered{m, group.generation(), {number, {}}});
  }
  Effects saves(Member m, std::uint64_t number) {
    wire::PsSaved saved;
    saved.number = number;
    return step(SlicesSaved{m, group.generation(), saved});
  }

  MonoTime now{};
  ServerGroup group{{2, SyncStrategy::kPsBsp, 0}};
};

TEST_F(ServerGroupResizeTest, NobodyIsToldToCutBeforeAllKnowThatNothingFollows) {
  const Effects ordered = step(CutOrdered{1, true});
  ASSERT_THAT(all<SendServe>(ordered), SizeIs(2));
  EXPECT_EQ(all<SendServe>(ordered)[1].serve.last_cut, 1U);
  EXPECT_THAT(all<SendCut>(ordered), IsEmpty());
  EXPECT_TRUE(group.closing());
  EXPECT_THAT(all<SendCut>(serves(s(0), group.roster().number)), IsEmpty());
  EXPECT_THAT(all<SendCut>(step(TimePassed{})), IsEmpty());
  EXPECT_THAT(all<SendCut>(serves(s(1), group.roster().number)), SizeIs(2));
  saves(s(0), 1);
  const auto done = all<ConcludeCut>(saves(s(1), 1));
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].error, "");
  EXPECT_TRUE(group.closing()) << "it is not stored yet";
}

TEST_F(ServerGroupResizeTest, AServerOfTheNextSizeIsNoPartOfTheGroupThatServes) {
  step(ProcessesExpected{{s(0), s(1)}, {w(0), w(1)}, {s(2)}});
  joins(group, s(2));
  EXPECT_TRUE(group.serving());
  EXPECT_EQ(group.placement().role_of(s(2)), ServerRole::kNone);
  EXPECT_THAT(group.placement().endpoints(), ElementsAre("/run/s0", "/run/s1"));
  step(GroupMemberLost{s(2), "killed"});
  EXPECT_TRUE(group.serving());
}

TEST_F(ServerGroupResizeTest, TheGroupOfTheNextSizeGoesOnFromTheCheckpointThatIsFound) {
  step(ProcessesExpected{{s(0), s(1)}, {w(0), w(1)}, {s(2)}});
  joins(group, s(2));
  const auto over = all<DissolveGroup>(step(GroupResized{3}));
  ASSERT_THAT(over, SizeIs(1));
  EXPECT_THAT(over[0].workers, ElementsAre(w(0), w(1)));
  EXPECT_FALSE(group.closing());
  step(ProcessesExpected{{s(0), s(1), s(2)}, {w(0), w(1)}});
  joins(group, w(0));
  EXPECT_THAT(all<ChooseRestore>(step(GroupJoinRequested{w(1), ""})), SizeIs(1));
  const auto told = all<SendServe>(step(RestoreChosen{"checkpoints/s9", 9}));
  ASSERT_THAT(told, SizeIs(3));
  EXPECT_EQ(told[2].to, s(2));
  EXPECT_EQ(told[2].serve.index, 2U);
  EXPECT_EQ(told[0].serve.restore, "checkpoints/s9");
  EXPECT_EQ(told[0].serve.last_cut, 0U);
}

TEST_F(ServerGroupResizeTest, FewerServersChangeTheReplicaSetsOfThoseThatStay) {
  step(GroupResized{1});
  step(ProcessesExpected{{s(1)}, {w(0), w(1)}});
  for (const Member m : {w(0), w(1)}) joins(group, m);
  const auto told = all<SendServe>(step(RestoreChosen{}));
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].to, s(1));
  EXPECT_EQ(told[0].serve.index, 0U);
  EXPECT_THAT(told[0].serve.servers, ElementsAre("/run/s1"));
}

TEST_F(ServerGroupResizeTest, ALastCheckpointThatIsGivenUpLetsTheGroupGoOn) {
  step(CutOrdered{1, true});
  const std::uint64_t number = group.roster().number;
  for (const Member m : {s(0), s(1)}) serves(m, number);
  const Effects on = step(ResizeAbandoned{});
  ASSERT_THAT(all<SendServe>(on), SizeIs(2));
  EXPECT_EQ(all<SendServe>(on)[0].serve.last_cut, 0U);
  EXPECT_GT(group.roster().number, number);
  EXPECT_TRUE(group.serving());
  for (const Member m : {s(0), s(1)}) EXPECT_THAT(all<ConcludeCut>(saves(m, 1)), IsEmpty());
  EXPECT_THAT(all<SendServe>(step(ResizeAbandoned{})), IsEmpty()) << "once is enough";
  EXPECT_THAT(all<SendCut>(step(CutOrdered{2})), SizeIs(2)) << "one like any other";
}

TEST_F(ServerGroupResizeTest, AWorkerLostMeanwhileFailsTheLastCheckpoint) {
  step(CutOrdered{1, true});
  for (const Member m : {s(0), s(1)}) serves(m, group.roster().number);
  const auto done = all<ConcludeCut>(step(GroupMemberLost{w(1), "killed"}));
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_THAT(done[0].error, ::testing::HasSubstr("w1 was lost"));
}

TEST_F(ServerGroupResizeTest, TheNextIncarnationKnowsTheSizeAndLetsTheGroupGoOn) {
  step(GroupResized{3});
  ServerGroup next({2, SyncStrategy::kPsBsp, 0});
  next.restore(group.image(), {});
  EXPECT_EQ(next.placement().index_of(WorkerId{'s', 2}), 2U);

  form(group = ServerGroup({2, SyncStrategy::kPsBsp, 0}));
  step(CutOrdered{1, true});
  const std::uint64_t said = group.roster().number;
  ServerGroup after({2, SyncStrategy::kPsBsp, 0});
  after.restore(group.image(), {});
  EXPECT_FALSE(after.closing());
  EXPECT_GT(after.roster().number, said);
  now += std::chrono::seconds(1);
  const auto told = all<SendServe>(step(after, TimePassed{}));
  ASSERT_THAT(told, SizeIs(2));
  EXPECT_EQ(told[0].serve.last_cut, 0U);
}

TEST_F(ServerGroupResizeTest, RowsThatWereKeptAreNotThoseOfTheNextSize) {
  ServerGroup keeps({2, SyncStrategy::kPsAsp, 0, std::chrono::seconds(120), 1, true});
  form(keeps);
  step(keeps, GroupMemberLost{s(1), "killed"});
  ASSERT_THAT(keeps.keepers(), ElementsAre(s(0)));
  step(keeps, GroupResized{1});
  EXPECT_THAT(keeps.keepers(), IsEmpty());
  EXPECT_TRUE(keeps.image().state_lost);
}

}  // namespace
}  // namespace antdt::ctl
