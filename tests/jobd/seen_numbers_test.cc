#include "jobd/disk/seen_numbers.h"

#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "ctl/lifecycle/lifecycle.h"
#include "ctl/membership/membership.h"

namespace antdt::jobd {
namespace {

constexpr WorkerId kW0{'w', 0};
constexpr WorkerId kW1{'w', 1};
constexpr WorkerId kW5{'w', 5};
constexpr WorkerId kS1{'s', 1};

TEST(SeenNumbers, ACheckpointsNameTellsLineageGenerationAndItsWriter) {
  SeenNumbers seen;
  seen.in_checkpoint_name("s0000000120-l3-g17-w1.4");
  seen.in_checkpoint_name("s0000000900-l2-g40-w1.2");
  EXPECT_EQ(seen.lineage, Lineage{3});
  EXPECT_EQ(seen.generation, Generation{40});
  EXPECT_EQ(seen.attempts.at(kW1), Attempt{4});
}

// With parameter servers, the first of them is the writer.
TEST(SeenNumbers, ACheckpointThatServersWroteTellsTheSame) {
  SeenNumbers seen;
  seen.in_checkpoint_name("s0000000120-l3-g17-s1.4");
  EXPECT_EQ(seen.lineage, Lineage{3});
  EXPECT_EQ(seen.generation, Generation{17});
  EXPECT_EQ(seen.attempts.at(kS1), Attempt{4});
}

TEST(SeenNumbers, OtherFilesThanCheckpointsLogsAndEventsAreIgnored) {
  SeenNumbers seen;
  seen.in_checkpoint_name(".tmp-12-1");
  seen.in_checkpoint_name("s12-l3");
  seen.in_log_name("jobd.3.err");
  seen.in_log_name("x1.3.err");
  seen.in_event("{\"time_s\":\"soon\"");
  seen.in_event("[1]");
  seen.in_summary("nothing");
  EXPECT_EQ(seen.lineage, Lineage{});
  EXPECT_TRUE(seen.attempts.empty());
}

TEST(SeenNumbers, AreGatheredFromEverythingThatTheRunLeft) {
  TempDir run;
  ASSERT_TRUE(make_directories(run / "checkpoints/s0000000007-l1-g2-w0.1"));
  ASSERT_TRUE(make_directories(run / "logs"));
  ASSERT_TRUE(write_file_atomic(run / "logs/w5.3.err", ""));
  ASSERT_TRUE(write_file_atomic(run / "logs/s1.2.out", ""));
  ASSERT_TRUE(write_file_atomic(run / "summary.1.json",
                                R"({"lineages":2,"generations":9,"incarnations":4})"));
  ASSERT_TRUE(write_file_atomic(run / "events.jsonl",
                                "{\"time_s\":1.5,\"kind\":\"start\",\"incarnation\":6}\n"
                                "{\"time_s\":42.5,\"kind\":\"end\"}\n{\"time_"));
  ASSERT_TRUE(
      write_file_atomic(run / "skips.json",
                        R"([{"epoch":0,"from":1,"to":2,"reason":"bad","who":"me","lineage":3}])"));
  const SeenNumbers seen = seen_in(run.path());
  EXPECT_EQ(seen.lineage, Lineage{3});
  EXPECT_EQ(seen.generation, Generation{9});
  EXPECT_EQ(seen.incarnation, Incarnation{6});
  EXPECT_EQ(seen.attempts.at(kW0), Attempt{1});
  EXPECT_EQ(seen.attempts.at(kW5), Attempt{3});
  EXPECT_EQ(seen.attempts.at(kS1), Attempt{2});
  EXPECT_EQ(seen.seconds, 42.5);
}

TEST(SeenNumbers, TheHighestNumberOfAKindCountsInAnyOrder) {
  SeenNumbers seen;
  for (const char* name : {"w1.2.err", "w1.10.out", "w1.9.err"}) seen.in_log_name(name);
  EXPECT_EQ(seen.attempts.at(kW1), Attempt{10}) << "by number, not by name";
  seen.in_summary(R"({"lineages":4,"generations":9,"incarnations":4})");
  seen.in_summary(R"({"lineages":3,"generations":12,"incarnations":2})");
  EXPECT_EQ(seen.lineage, Lineage{4});
  EXPECT_EQ(seen.generation, Generation{12});
  EXPECT_EQ(seen.incarnation, Incarnation{4});
}

TEST(SeenNumbers, AMemberThatIsNoNumberIsLeftAloneAndTheOthersCount) {
  SeenNumbers seen;
  seen.in_summary(R"({"lineages":"four","generations":-2,"incarnations":5})");
  EXPECT_EQ(seen.lineage, Lineage{});
  EXPECT_EQ(seen.generation, Generation{});
  EXPECT_EQ(seen.incarnation, Incarnation{5});
  seen.in_event(R"({"time_s":3.5,"incarnation":null})");
  EXPECT_EQ(seen.seconds, 3.5);
}

TEST(SeenNumbers, EventsThatWereRotatedAwayCountToo) {
  TempDir run;
  ASSERT_TRUE(write_file_atomic(run / "events.jsonl.1", "{\"time_s\":7,\"incarnation\":6}\n"));
  ASSERT_TRUE(write_file_atomic(run / "events.jsonl", "{\"time_s\":9}\n"));
  const SeenNumbers seen = seen_in(run.path());
  EXPECT_EQ(seen.incarnation, Incarnation{6});
  EXPECT_EQ(seen.seconds, 9);
}

TEST(SeenNumbers, ARunThatLeftNothingHasUsedNoNumbers) {
  TempDir run;
  const SeenNumbers seen = seen_in(run.path());
  EXPECT_EQ(seen.lineage, Lineage{});
  EXPECT_EQ(seen.incarnation, Incarnation{});
  EXPECT_TRUE(seen.attempts.empty());
  EXPECT_TRUE(seen_in(run / "nowhere").attempts.empty());
}

TEST(SeenNumbers, ALedgerHasTheNumbersOfItsMembers) {
  shard_server::LedgerConfig config;
  config.train.records = config.train.shard_records = 10;
  shard_server::Ledger ledger(config);
  shard_server::ledger::Effects effects;
  ledger.step(shard_server::ledger::MemberAdmitted{{kW1, Attempt{8}}, Generation{30}}, MonoTime{},
              effects);
  SeenNumbers seen;
  seen.in_ledger(ledger);
  EXPECT_EQ(seen.attempts.at(kW1), Attempt{8});
  EXPECT_EQ(seen.generation, Generation{30});
}

TEST(ImageAbove, EveryNumberIsFarAboveWhatWasSeen) {
  SeenNumbers seen;
  seen.lineage = Lineage{3};
  seen.generation = Generation{1040};
  seen.incarnation = Incarnation{100};
  seen.at_attempt(kW1, Attempt{104});
  const ctl::JobImage image = image_above(seen, 2, 0);
  EXPECT_EQ(incarnation_above(seen), Incarnation{201});
  EXPECT_EQ(image.membership.lineage, Lineage{10}) << "the checkpoint begins the next one";
  EXPECT_EQ(image.membership.generation, Generation{2000});
  ASSERT_EQ(image.lifecycle.workers.size(), 2U);
  EXPECT_EQ(image.lifecycle.workers[0].attempt, Attempt{100});
  EXPECT_EQ(image.lifecycle.workers[1].attempt, Attempt{200});
}

// What came after the last sign of a number may be a good many more.
TEST(ImageAbove, ANumberJustBelowARoundOneHasTheSameMargin) {
  SeenNumbers seen;
  seen.lineage = Lineage{9};
  seen.generation = Generation{999};
  seen.incarnation = Incarnation{199};
  seen.at_attempt(kW1, Attempt{99});
  const ctl::JobImage image = image_above(seen, 2, 0);
  EXPECT_EQ(incarnation_above(seen), Incarnation{301});
  EXPECT_EQ(image.membership.lineage, Lineage{20});
  EXPECT_EQ(image.membership.generation, Generation{2000});
  EXPECT_EQ(image.lifecycle.workers[1].attempt, Attempt{200});
}

TEST(SeenNumbers, ALineageThatLeftNoCheckpointIsToldByTheEventThatItBegan) {
  SeenNumbers seen;
  seen.in_checkpoint_name("s0000000120-l3-g17-w1.4");
  seen.in_event(R"({"time_s":9.5,"kind":"restored","text":"…","lineage":5})");
  EXPECT_EQ(seen.lineage, Lineage{5});
}

TEST(ImageAbove, NobodyHoldsTheTrainingStateSoThatACheckpointIsAskedFor) {
  const ctl::JobImage image = image_above({}, 1, 0);
  ctl::Membership membership(crypto::Secret(), std::chrono::seconds(10));
  membership.restore(image.membership);
  const Member w0{kW0, image.lifecycle.workers.front().attempt.next()};
  ctl::membership::Effects effects;
  membership.step(ctl::membership::MembersExpected{{{w0, "host", 0}}}, MonoTime{}, effects);
  membership.step(ctl::membership::MemberJoined{w0, {}, {}}, MonoTime{}, effects);
  ASSERT_EQ(effects.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<ctl::membership::RestoreState>(effects.front()));
}

TEST(ImageAbove, AWorkerOfALargerTimeIsNotStartedAndKeepsItsAttempts) {
  SeenNumbers seen;
  seen.at_attempt(kW5, Attempt{3});
  const ctl::JobImage image = image_above(seen, 1, 0);
  ASSERT_EQ(image.lifecycle.workers.size(), 2U);
  EXPECT_EQ(image.lifecycle.workers[0].state, ctl::WorkerProcess::kExited);
  EXPECT_EQ(image.lifecycle.workers[1].state, ctl::WorkerProcess::kRemoved);
  EXPECT_EQ(image.lifecycle.workers[1].attempt, Attempt{100});
}

TEST(ImageAbove, ServersFollowTheWorkersWithAttemptsOfTheirOwn) {
  SeenNumbers seen;
  seen.at_attempt(kW1, Attempt{104});
  seen.at_attempt(kS1, Attempt{2});
  const ctl::JobImage image = image_above(seen, 2, 2);
  const auto& all = image.lifecycle.workers;
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[1].place.worker, kW1);
  EXPECT_EQ(all[1].attempt, Attempt{200});
  EXPECT_EQ(all[2].place.worker, (WorkerId{'s', 0}));
  EXPECT_EQ(all[3].place.worker, kS1);
  for (const auto index : {2U, 3U}) {
    EXPECT_EQ(all[index].attempt, Attempt{100});
    EXPECT_EQ(all[index].state, ctl::WorkerProcess::kExited);
  }
}

}  // namespace
}  // namespace antdt::jobd
