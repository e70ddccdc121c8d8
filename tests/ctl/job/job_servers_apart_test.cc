// Parameter servers on hosts that share nothing: which host has which part of a checkpoint, which
// host needs the parts before they are read, and a server whose host has no room for its part.
#include <gmock/gmock.h>

#include "tests/ctl/job/job_servers_fixture.h"

namespace antdt::ctl {
namespace {

using ::testing::HasSubstr;

// Two hosts, with a server and a worker on each.
class JobServersApartTest : public JobServersTest {
 protected:
  explicit JobServersApartTest(std::uint32_t room = 4) {
    open(with_servers());
    host_with_room("a", room);
    host_with_room("b", room);
    feed(lifecycle::WorkersPlaced{{{w(0).worker, "a", 0},
                                   {w(1).worker, "b", 1},
                                   {s(0).worker, "a", 0},
                                   {s(1).worker, "b", 1}}});
    const std::vector<Member> all = {w(0), w(1), s(0), s(1)};
    for (const Member m : all) feed(lifecycle::WorkerStarted{m, 1});
    for (const Member m : all) joins(m);
    serve({s(0), s(1)});
  }
  static wire::PsSaved saved(std::uint64_t number, const std::string& file) {
    return {number, 4, 0, {{file, 8, "00"}}, {}, ""};
  }
  void host_with_room(const std::string& name, std::uint32_t room) {
    HostState h;
    h.host = h.name = name;
    h.room = room;
    feed(job::HostWelcomed{h, {}});
  }
  void third_host() { host_with_room("c", 4); }
  // The server fails to write its part of the present checkpoint. `version`: of the state that it
  // could not write.
  job::Effects cannot_write(Member server, std::uint64_t version = 4) {
    wire::PsSaved said;
    said.number = machine->server_group().image().cut;
    said.version = version;
    said.error = "No space left on device";
    return says(server, said);
  }
  [[nodiscard]] const WorkerProcess* find(Member server) const {
    return machine->lifecycle().find(server.worker);
  }
  static std::string noted(const job::Effects& outputs, const std::string& kind) {
    for (const auto& note : all<job::PublishNote>(outputs)) {
      if (note.kind == kind) return note.text;
    }
    return "";
  }
};

TEST_F(JobServersApartTest, ACheckpointSaysWhichOfItsFilesLieOnWhichHost) {
  const std::uint64_t cut = sent<wire::PsCut>(order_checkpoint()).at(0).second.number;
  says(s(1), saved(cut, "slice-01.rows"));
  const auto stored = all<job::StoreCheckpoint>(says(s(0), saved(cut, "slice-00.rows")));
  ASSERT_EQ(stored.size(), 1U);
  ASSERT_EQ(stored[0].parts.size(), 2U);
  for (const auto& [part, host, file] :
       {std::tuple(0, "a", "slice-00.rows"), std::tuple(1, "b", "slice-01.rows")}) {
    EXPECT_EQ(stored[0].parts[part].host, host);
    ASSERT_EQ(stored[0].parts[part].files.size(), 1U);
    EXPECT_EQ(stored[0].parts[part].files[0].name, file);
  }
}

// Otherwise a disk that is full of them stays full.
TEST_F(JobServersApartTest, WhatOtherServersWroteOfOneThatFailedIsRemoved) {
  const std::uint64_t cut = sent<wire::PsCut>(order_checkpoint()).at(0).second.number;
  says(s(1), saved(cut, "slice-01.rows"));
  const auto removes = all<job::RemoveUnfinished>(cannot_write(s(0)));
  ASSERT_EQ(removes.size(), 1U);
  EXPECT_EQ(removes[0].up_to, (copies::Age{machine->server_group().generation().value, cut}));
}

// Its files may still be on the hosts of the servers only, and are complete.
TEST_F(JobServersApartTest, OneThatIsBeingStoredStaysWhenTheNextOneFails) {
  const std::uint64_t generation = machine->server_group().generation().value;
  const std::uint64_t first = sent<wire::PsCut>(order_checkpoint()).at(0).second.number;
  says(s(0), saved(first, "slice-00.rows"));
  ASSERT_EQ(all<job::StoreCheckpoint>(says(s(1), saved(first, "slice-01.rows"))).size(), 1U);
  feed(lifecycle::StopRequested{"operator", std::chrono::seconds(30)});
  ASSERT_EQ(machine->server_group().cut(), first + 1);
  const auto removes = all<job::RemoveUnfinished>(cannot_write(s(0)));
  ASSERT_EQ(removes.size(), 1U);
  EXPECT_EQ(removes[0].up_to, (copies::Age{generation, first - 1}));
  const auto after = all<job::RemoveUnfinished>(feed(job::CheckpointStored{
      first, Step{4}, "", "b was lost", machine->server_group().generation()}));
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0].up_to, (copies::Age{generation, first + 1}));
}

TEST_F(JobServersApartTest, EachServerIsToldWhichCheckpointIsToBeOnItsHostBeforeItReads) {
  exits(s(1), SIGKILL);
  started_again(s(1, 2));
  joins(w(0));
  joins(w(1));
  const std::string ledger = machine->ledger().image();
  const auto begun = feed(
      job::CheckpointFound{"/run/checkpoints/s4", Step{4}, ledger, machine->accounts().image()});
  std::map<Member, std::string> reads;
  for (const auto& message : all<job::SendToWorker>(begun)) {
    if (std::holds_alternative<wire::PsServe>(message.body)) reads[message.to] = message.reads;
  }
  EXPECT_EQ(reads, (std::map<Member, std::string>{{s(0), "/run/checkpoints/s4"},
                                                  {s(1, 2), "/run/checkpoints/s4"}}));
}

TEST_F(JobServersApartTest, AServerThatCannotWriteThreeTimesInARowIsMovedToAnotherHost) {
  third_host();
  for (int n = 0; n < 2; ++n) {
    order_checkpoint();
    EXPECT_THAT(noted(cannot_write(s(1)), "move"), "") << "a disk may be full for a moment";
  }
  order_checkpoint();
  EXPECT_THAT(noted(cannot_write(s(1)), "move"),
              ::testing::AllOf(HasSubstr("s1 is moved from b to c, as s3"),
                               HasSubstr("No space left on device")));
  ASSERT_NE(find(s(3)), nullptr);
  EXPECT_EQ(find(s(3))->place.host, "c");
  EXPECT_TRUE(machine->server_group().serving()) << "training goes on";
}

TEST_F(JobServersApartTest, OneCheckpointThatIsWrittenMeanwhileBeginsTheCountAnew) {
  third_host();
  for (int n = 0; n < 2; ++n) {
    order_checkpoint();
    cannot_write(s(1));
  }
  const std::uint64_t cut = sent<wire::PsCut>(order_checkpoint()).at(0).second.number;
  says(s(0), saved(cut, "slice-00.rows"));
  says(s(1), saved(cut, "slice-01.rows"));
  feed(job::CheckpointStored{cut, Step{4}, "s4", ""});
  order_checkpoint();
  cannot_write(s(1));
  EXPECT_EQ(find(s(3)), nullptr);
}

TEST_F(JobServersApartTest, AServerThatHasNothingToWriteYetIsNotMoved) {
  third_host();
  for (int n = 0; n < 5; ++n) {
    order_checkpoint();
    cannot_write(s(1), 0);
  }
  EXPECT_EQ(find(s(3)), nullptr);
}

class JobServersOfFullHosts : public JobServersApartTest {
 protected:
  JobServersOfFullHosts() : JobServersApartTest(2) {}
};

TEST_F(JobServersOfFullHosts, TheReasonWhyAServerThatCannotWriteStaysIsReportedOnce) {
  std::vector<std::string> said;
  for (int n = 0; n < 6; ++n) {
    order_checkpoint();
    const std::string text = noted(cannot_write(s(1)), "cannot-move");
    if (!text.empty()) said.push_back(text);
  }
  EXPECT_THAT(said, ::testing::ElementsAre(::testing::AllOf(
                        HasSubstr("s1 should be moved, since 3 checkpoints in a row failed"),
                        HasSubstr("no other host has room for s1"))));
  third_host();
  order_checkpoint();
  cannot_write(s(1));
  ASSERT_NE(find(s(3)), nullptr);
  EXPECT_EQ(find(s(3))->place.host, "c") << "as soon as there is room";
}

TEST_F(JobServersApartTest, AModelThatWasFetchedWhenTheJobDaemonWasLostIsWrittenAgain) {
  train_the_rest();
  end_of(1, {w(0), w(1)});
  const std::uint64_t cut = machine->server_group().image().cut;
  says(s(0), saved(cut, "slice-00.rows"));
  ASSERT_EQ(all<job::StoreCheckpoint>(says(s(1), saved(cut, "slice-01.rows"))).size(), 1U);
  open(with_servers());
  host_with_room("a", 4);
  host_with_room("b", 4);
  clock.advance(std::chrono::seconds(3));
  const auto again = sent<wire::PsCut>(feed(job::TimePassed{}));
  ASSERT_EQ(again.size(), 2U);
  EXPECT_GT(again[0].second.number, cut);
}

TEST_F(JobServersApartTest, TheTrainedModelIsWrittenWhereThereIsRoomForIt) {
  third_host();
  train_the_rest();
  end_of(1, {w(0), w(1)});
  ASSERT_EQ(machine->lifecycle().phase().what, wire::PhaseKind::kFinish);
  for (int n = 0; n < 3; ++n) {
    cannot_write(s(1));
    clock.advance(std::chrono::seconds(3));
    feed(job::TimePassed{});
  }
  ASSERT_NE(find(s(3)), nullptr);
  EXPECT_EQ(find(s(3))->place.host, "c");
  // It has everything that s1 has, and takes over.
  feed(lifecycle::WorkerStarted{s(3), 9});
  joins(s(3));
  serve({s(0), s(1), s(3)});
  wire::PsServing backed{number[s(1)], {}};
  backed.backed = 1;
  const auto leave = sent<wire::Leave>(says(s(1), backed));
  ASSERT_EQ(leave.size(), 1U);
  EXPECT_EQ(leave[0].first, s(1));
  exits(s(1), 0);
  clock.advance(std::chrono::seconds(3));
  feed(job::TimePassed{});
  const std::uint64_t cut = machine->server_group().image().cut;
  says(s(0), saved(cut, "slice-00.rows"));
  const auto stored = all<job::StoreCheckpoint>(says(s(3), saved(cut, "slice-01.rows")));
  ASSERT_EQ(stored.size(), 1U);
  ASSERT_EQ(stored[0].parts.size(), 2U);
  EXPECT_EQ(stored[0].parts[1].host, "c");
}

}  // namespace
}  // namespace antdt::ctl
