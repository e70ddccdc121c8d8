// Members of a collective whose embedding rows are on two servers (sync = "hybrid"): that the two
// groups begin, go back and are stored together.
#include <gmock/gmock.h>

#include "tests/ctl/job/job_servers_fixture.h"

namespace antdt::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class JobHybridTest : public JobServersTest {
 protected:
  JobHybridTest() {
    JobMachineConfig with = with_servers();
    with.spec.sync = SyncStrategy::kHybrid;
    begin(with, {w(0), w(1), s(0), s(1)});
    for (const Member m : {w(0), w(1), s(0), s(1)}) joins(m);
  }
  void saw(const job::Effects& outputs) override {
    JobServersTest::saw(outputs);
    for (const auto& form : sent<wire::Form>(outputs)) forms.push_back(form);
    for (const auto& settle : sent<wire::Settle>(outputs)) settles.push_back(settle.second);
    for (const auto& start : sent<wire::PhaseStart>(outputs)) starts.push_back(start.second);
    for (const auto& abort : sent<wire::Abort>(outputs)) aborts.push_back(abort);
    for (const auto& store : all<job::StoreCheckpoint>(outputs)) stored.push_back(store);
    for (const auto& asked : all<job::FindCheckpoint>(outputs)) search = asked, ++searches;
  }
  template <class Body>
  job::Effects server_says(Member server, const Body& body) {
    return feed(job::WorkerSaid{server, machine->server_group().generation(), 0, body});
  }
  void serve_all(std::uint32_t attempt = 1) {
    for (const Member m : {s(0, attempt), s(1)}) {
      server_says(m, wire::PsServing{number[m], {}});
    }
  }
  void settle(Step step = {}) {
    for (const Member m : {w(0), w(1)}) says(m, wire::Address{"here"});
    for (const Member m : {w(0), w(1)}) {
      wire::Ready ready;
      ready.step = step;
      says(m, ready);
    }
  }
  void dense_part(std::uint64_t checkpoint, Step step) {
    wire::CheckpointWritten written;
    written.number = checkpoint;
    written.phase = 1;
    written.step = step;
    written.directory = "/run/checkpoints/.tmp-1-g1";
    written.places = {{w(0).worker, 0}, {w(1).worker, 0}};
    written.files.push_back({"state.bin", 8, {}});
    says(w(0), written);
  }
  void rows_part(std::uint64_t checkpoint, std::uint64_t version) {
    for (const Member m : {s(0), s(1)}) {
      wire::PsSaved saved;
      saved.number = checkpoint;
      saved.version = version;
      saved.files.push_back({"slice-0" + std::to_string(m.worker.index) + ".rows", 8, {}});
      server_says(m, saved);
    }
  }
  // Both members leave the generation that has settled; returns what people are told.
  std::vector<job::PublishNote> leave_with(const std::string& problem, bool of_checkpoint = false) {
    clock.advance(std::chrono::seconds(6));
    const Generation settled = machine->membership().base();
    wire::Join cannot = join(settled, Step{});
    cannot.problem = problem;
    if (of_checkpoint) cannot.unreadable = problem;
    std::vector<job::PublishNote> notes;
    for (const Member m : {w(0), w(1)}) {
      const auto outputs = feed(job::WorkerSaid{m, settled, 0, cannot});
      for (const auto& note : all<job::PublishNote>(outputs)) notes.push_back(note);
    }
    return notes;
  }
  void lose_the_first_server() {
    exits(s(0), SIGKILL);
    clock.advance(std::chrono::seconds(5));
    feed(job::TimePassed{});
    feed(lifecycle::WorkerStarted{s(0, 2), 2});
    joins(s(0, 2));
  }

  // The servers have their rows of it, and the members are to read their part.
  job::CheckpointFound go_back_to_a_checkpoint() {
    const job::CheckpointFound found{"checkpoints/2", Step{}, machine->ledger().image(),
                                     machine->accounts().image()};
    serve_all();
    settle();
    lose_the_first_server();
    for (const Member m : {w(0), w(1)}) says(m, join(Generation{1}, Step{7}));
    feed(found);
    for (const Member m : {w(0), w(1)}) says(m, join(Generation{1}, Step{7}));
    serve_all(2);
    return found;
  }

  std::vector<std::pair<Member, wire::Form>> forms;
  std::vector<wire::Settle> settles;
  std::vector<wire::PhaseStart> starts;
  std::vector<std::pair<Member, wire::Abort>> aborts;
  std::vector<job::StoreCheckpoint> stored;
  std::size_t searches = 0;
  job::FindCheckpoint search;  // the last one
};

TEST_F(JobHybridTest, MembersAreFormedOnceTheServersServeAndHearWhereTheyAre) {
  EXPECT_THAT(forms, IsEmpty()) << "the servers have not answered";
  serve_all();
  EXPECT_THAT(forms, SizeIs(2));
  settle();
  ASSERT_THAT(settles, SizeIs(2));
  ASSERT_TRUE(settles[0].servers.has_value());
  EXPECT_EQ(settles[0].servers->servers, (std::vector<std::string>{"/run/s0", "/run/s1"}));
  EXPECT_EQ(settles[0].servers->sync, SyncStrategy::kHybrid);
  EXPECT_EQ(settles[0].group, machine->server_group().generation());
}

TEST_F(JobHybridTest, ALostServerTakesMembersAndServersBackToOneCheckpoint) {
  serve_all();
  settle();
  forms.clear();
  lose_the_first_server();
  EXPECT_THAT(aborts, SizeIs(testing::Ge(2U)));
  for (const Member m : {w(0), w(1)}) says(m, join(Generation{1}, Step{7}));
  EXPECT_EQ(searches, 1U);
  EXPECT_THAT(forms, IsEmpty()) << "it is not known yet from where training goes on";

  const auto outputs = feed(job::CheckpointFound{});
  EXPECT_EQ(machine->membership().lineage(), Lineage{2});
  EXPECT_THAT(sent<wire::PsServe>(outputs), SizeIs(2)) << "in the same turn";
  for (const Member m : {w(0), w(1)}) says(m, join(Generation{1}, Step{7}));
  EXPECT_THAT(forms, IsEmpty()) << "the servers do not have their rows yet";
  serve_all(2);
  ASSERT_THAT(forms, SizeIs(2));
  EXPECT_EQ(forms[0].second.base, Generation{}) << "nobody's replica belongs to these rows";
}

TEST_F(JobHybridTest, ServersKeepWhatTheyReadWhileMembersTryAgainAndDropItForAnotherCheckpoint) {
  const job::CheckpointFound found = go_back_to_a_checkpoint();
  wire::Join cannot = join();
  cannot.unreadable = "state.bin cannot be read: Stale file handle";
  cannot.may_pass = true;
  const auto nobody_can = [&] {
    for (const auto& [reader, other] : {std::pair(w(0), w(1)), std::pair(w(1), w(0))}) {
      says(reader, cannot);
      says(other, join());
    }
  };
  nobody_can();
  ASSERT_EQ(searches, 2U);
  EXPECT_TRUE(machine->server_group().serving());
  forms.clear();
  EXPECT_THAT(sent<wire::PsServe>(feed(found)), IsEmpty());
  EXPECT_THAT(forms, SizeIs(2));
  EXPECT_EQ(machine->membership().lineage(), Lineage{2});

  nobody_can();
  ASSERT_EQ(searches, 3U);
  job::CheckpointFound older = found;
  older.directory = "checkpoints/1";
  feed(older);
  EXPECT_FALSE(machine->server_group().serving());
  for (const Member m : {s(0, 2), s(1)}) joins(m);
  for (const Member m : {w(0), w(1)}) says(m, join());  // both repeat it until they are answered
  ASSERT_EQ(searches, 4U);
  const auto serves = sent<wire::PsServe>(feed(older));
  ASSERT_THAT(serves, SizeIs(2));
  EXPECT_EQ(serves[0].second.restore, "checkpoints/1");
  EXPECT_EQ(machine->membership().lineage(), Lineage{3});
}

TEST_F(JobHybridTest, RowsThatServersCannotReadJustNowTakeBothGroupsBack) {
  const job::CheckpointFound found = go_back_to_a_checkpoint();
  settle();
  ASSERT_TRUE(machine->membership().settled());
  // Each member repeats what it has said until it hears of the next generation.
  const Generation refused = machine->membership().generation();
  wire::Join cannot = join(refused, Step{});
  cannot.problem = "s1 on a: slice-01.rows cannot be read: Stale file handle";
  cannot.may_pass = true;
  const auto repeat = [&] {
    for (const Member m : {w(0), w(1)}) feed(job::WorkerSaid{m, refused, 0, cannot});
  };
  repeat();
  EXPECT_FALSE(machine->server_group().serving());
  for (const Member m : {s(0, 2), s(1)}) joins(m);
  repeat();
  ASSERT_EQ(searches, 2U);
  EXPECT_THAT(
      search.unread,
      HasSubstr("servers cannot read the checkpoint checkpoints/2: s1 on a: slice-01.rows"));
  EXPECT_THAT(sent<wire::PsServe>(feed(found)), SizeIs(2));
  EXPECT_EQ(machine->membership().lineage(), Lineage{3});
  repeat();
  forms.clear();
  serve_all(2);
  EXPECT_THAT(forms, SizeIs(2)) << "nobody was asked to read in the new lineage yet";
  repeat();
  EXPECT_TRUE(machine->server_group().serving());
  EXPECT_EQ(searches, 2U);
}

TEST_F(JobHybridTest, WhatServersRefuseIsToldAndEndsTheJobTheFifthTime) {
  serve_all();
  settle();
  for (int n = 0; n < 5; ++n) {
    ASSERT_FALSE(outcome);
    const auto notes = leave_with("s1 on a: the tables do not fit");
    ASSERT_THAT(notes, testing::Not(IsEmpty()));
    EXPECT_EQ(notes[0].kind, "cannot-begin");
    EXPECT_EQ(notes[0].text, "w0 on a: s1 on a: the tables do not fit");
    settle();
  }
  for (const Member m : {w(0), w(1), s(0), s(1)}) exits(m, SIGTERM);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->code, 3);
  EXPECT_THAT(outcome->first_cause, HasSubstr("s1 on a: the tables do not fit"));
}

TEST_F(JobHybridTest, ADamagedSliceIsLookedForOnceMoreAndThenEndsTheJobAsADamagedReplicaDoes) {
  const job::CheckpointFound found = go_back_to_a_checkpoint();
  settle();
  ASSERT_TRUE(machine->membership().settled());
  const Generation refused = machine->membership().generation();
  const auto refuse = [&] {
    wire::Join cannot = join(refused, Step{});
    cannot.problem = cannot.unreadable = "s1 on a: slice-01.rows does not have the checksum";
    for (const Member m : {w(0), w(1)}) feed(job::WorkerSaid{m, refused, 0, cannot});
  };
  refuse();
  EXPECT_FALSE(machine->server_group().serving());
  for (const Member m : {s(0, 2), s(1)}) joins(m);
  refuse();
  ASSERT_EQ(searches, 2U);
  EXPECT_THAT(search.unread,
              HasSubstr("servers cannot read the checkpoint checkpoints/2: s1 on a"));
  EXPECT_EQ(search.checkpoint, "checkpoints/2");
  EXPECT_TRUE(search.damaged);
  feed(found);
  refuse();
  serve_all(2);
  settle();
  ASSERT_TRUE(machine->membership().settled());
  for (int n = 0; n < 5; ++n) {
    ASSERT_FALSE(outcome);
    leave_with("s1 on a: slice-01.rows does not have the checksum", true);
    settle();
  }
  EXPECT_EQ(searches, 2U);
  for (const Member m : {w(0), w(1), s(0, 2), s(1)}) exits(m, SIGTERM);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->code, 1);
  EXPECT_EQ(outcome->exit_class, ExitClass::kCheckpoint);
}

TEST_F(JobHybridTest, AProblemThatAMemberRepeatsWhileItWaitsForTheOthersIsToldOnce) {
  serve_all();
  settle();
  const Generation settled = machine->membership().generation();
  wire::Join cannot = join(settled, Step{});
  cannot.problem = "the tables do not fit";
  std::vector<std::string> told;
  for (int n = 0; n < 9; ++n) {
    const auto outputs = feed(job::WorkerSaid{w(0), settled, 0, cannot});
    for (const auto& note : all<job::PublishNote>(outputs)) told.push_back(note.kind);
    clock.advance(std::chrono::seconds(6));
  }
  EXPECT_THAT(told, testing::ElementsAre("cannot-begin"));
  EXPECT_FALSE(outcome);
}

TEST_F(JobHybridTest, WhatHindersAMemberInAFormationIsNotTheServersFault) {
  serve_all();
  settle();
  wire::Join broken = join(machine->membership().generation(), Step{});
  for (const Member m : {w(0), w(1)}) says(m, broken);
  ASSERT_GT(machine->membership().generation(), machine->membership().base());
  broken.problem = "cannot connect to w1";
  for (const auto& note : all<job::PublishNote>(says(w(0), broken))) {
    EXPECT_NE(note.kind, "cannot-begin") << note.text;
  }
}

TEST_F(JobHybridTest, ARestartOfTheJobDaemonKeepsBothGroups) {
  serve_all();
  settle();
  const Generation group = machine->server_group().generation();
  JobMachineConfig again = with_servers();
  again.spec.sync = SyncStrategy::kHybrid;
  open(again);
  EXPECT_TRUE(machine->server_group().serving());
  EXPECT_EQ(machine->server_group().generation(), group);
  EXPECT_TRUE(machine->membership().settled());
  EXPECT_EQ(searches, 0U);
}

TEST_F(JobHybridTest, ACheckpointIsStoredWhenBothPartsAreThere) {
  serve_all();
  settle();
  order_checkpoint();
  dense_part(1, Step{5});
  EXPECT_THAT(stored, IsEmpty());
  rows_part(1, 5);
  ASSERT_THAT(stored, SizeIs(1));
  EXPECT_EQ(stored[0].written.step, Step{5});
  EXPECT_THAT(stored[0].written.files, SizeIs(3)) << "one of the replica, two of the rows";
}

TEST_F(JobHybridTest, ACheckpointThatGivesWayToTheModelDoesNotMakeAnotherMemberWriteIt) {
  serve_all();
  settle();
  order_checkpoint();
  for (const Member m : {w(0), w(1)}) ASSERT_EQ(fetch(m, 0, 50), 50U);
  wire::Progress done;
  done.phase = 1;
  done.step = Step{9};
  done.place = 50;
  done.done = true;
  for (const Member m : {w(0), w(1)}) says(m, done);
  ASSERT_EQ(machine->lifecycle().phase().what, wire::PhaseKind::kFinish);
  ASSERT_EQ(machine->server_group().cut(), 2U) << "the model; the servers write nothing else";
  const auto repeated = [&] {
    starts.clear();
    clock.advance(std::chrono::seconds(3));
    feed(job::TimePassed{});
    return starts.empty() ? wire::PhaseStart{} : starts.back();
  };
  EXPECT_EQ(repeated().what, wire::PhaseKind::kFinish);
  EXPECT_EQ(repeated().tries, 0U);
  wire::CheckpointWritten failed;
  failed.number = 2;
  failed.phase = 2;
  failed.error = "no space left on device";
  says(w(0), failed);
  EXPECT_EQ(repeated().tries, 1U) << "that was the model";
}

TEST_F(JobHybridTest, APartOfAnotherStepMakesNoCheckpoint) {
  serve_all();
  settle();
  order_checkpoint();
  rows_part(1, 6);
  dense_part(1, Step{5});
  EXPECT_THAT(stored, IsEmpty());
}

}  // namespace
}  // namespace antdt::ctl
