// A job with parameter servers: what the group's events mean for the ledger and the lifecycle.
#include "tests/ctl/job/job_servers_fixture.h"

namespace antdt::ctl {
namespace {

TEST_F(JobServersTest, WorkersHearOfTheServersThenOfTheirShareThenOfThePhase) {
  open(with_servers());
  host("a");
  lifecycle::WorkersPlaced placed;
  for (const Member m : {w(0), s(0), s(1)}) placed.workers.push_back({m.worker, "a", 0});
  feed(placed);
  for (const Member m : {w(0), s(0), s(1)}) joins(m);
  says(s(0), wire::PsServing{1, {}});
  const auto outputs = says(s(1), wire::PsServing{1, {}});
  std::vector<std::string> order;
  for (const auto& message : all<job::SendToWorker>(outputs)) {
    if (std::holds_alternative<wire::PsRoster>(message.body)) order.emplace_back("roster");
    if (std::holds_alternative<wire::Plan>(message.body)) order.emplace_back("plan");
    if (std::holds_alternative<wire::PhaseStart>(message.body)) order.emplace_back("phase");
  }
  ASSERT_GE(order.size(), 3U);
  EXPECT_EQ(order.front(), "roster");
  EXPECT_EQ(order[1], "plan");
  EXPECT_EQ(order.back(), "phase");
  const wire::PsRoster roster = sent<wire::PsRoster>(outputs)[0].second;
  EXPECT_EQ(roster.servers.size(), 2U);
  EXPECT_EQ(roster.keys, (std::vector<std::string>{"key of s0", "key of s1"}));
}

TEST_F(JobServersTest, AnUnreachableServerIsReportedWithTheHostsAndFinallyEndsTheJob) {
  start();
  wire::Join cannot = join();
  cannot.problem = "cannot reach parameter server s0";
  for (int n = 0; n < 5; ++n) {
    ASSERT_FALSE(outcome);
    clock.advance(std::chrono::seconds(6));
    const auto notes = all<job::PublishNote>(says(w(1), cannot));
    ASSERT_FALSE(notes.empty());
    EXPECT_EQ(notes[0].text, "w1 on a: cannot reach parameter server s0");
  }
  for (const Member m : {w(0), w(1), s(0), s(1)}) exits(m, SIGTERM);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->code, 3);
  EXPECT_NE(outcome->first_cause.find("w1 on a: cannot reach"), std::string::npos);
}

// Each server reads the copy of its own host, and that of the job daemon may be good.
TEST_F(JobServersTest, ADamagedSliceIsLookedForOnceMoreAndThenEndsTheJobAsADamagedReplicaDoes) {
  const std::vector<Member> all_four = {w(0), w(1), s(0), s(1)};
  begin(with_servers(), all_four);
  const job::CheckpointFound found{"/run/checkpoints/s4", Step{}, machine->ledger().image(),
                                   machine->accounts().image()};
  for (const Member m : all_four) joins(m);
  serve({s(0), s(1)});
  exits(s(1), SIGKILL);
  started_again(s(1, 2));
  for (const Member m : {w(0), w(1)}) joins(m);
  const auto go_back = [&] {
    number.clear();
    ASSERT_EQ(sent<wire::PsServe>(feed(found)).size(), 2U);
    serve({s(0), s(1, 2)});
    ASSERT_TRUE(machine->server_group().serving());
  };
  go_back();
  wire::Join cannot = join();
  cannot.problem = cannot.unreadable = "s0 on a: slice-01.rows does not have the checksum";
  says(w(1), cannot);
  const auto searches = all<job::FindCheckpoint>(joins(w(0)));
  ASSERT_EQ(searches.size(), 1U);
  EXPECT_EQ(searches[0].unread,
            "servers cannot read the checkpoint /run/checkpoints/s4: s0 on a: slice-01.rows does "
            "not have the checksum");
  EXPECT_EQ(searches[0].checkpoint, "/run/checkpoints/s4");
  EXPECT_TRUE(searches[0].damaged);
  go_back();
  for (int n = 0; n < 5; ++n) {
    ASSERT_FALSE(machine->lifecycle().outcome());
    clock.advance(std::chrono::seconds(6));
    EXPECT_TRUE(all<job::FindCheckpoint>(says(w(1), cannot)).empty());
  }
  for (const Member m : {w(0), w(1), s(0), s(1, 2)}) exits(m, SIGTERM);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->code, 1);
  EXPECT_EQ(outcome->exit_class, ExitClass::kCheckpoint);
  EXPECT_EQ(outcome->first_cause, "w1 on a: s0 on a: slice-01.rows does not have the checksum");
}

TEST_F(JobServersTest, RecordsThatAHomeReportsAsAppliedAreCommittedAndTheRestGrantedAgain) {
  start();
  ASSERT_EQ(fetch(w(0), 0, 50), 50U);
  ASSERT_EQ(fetch(w(1), 0, 50), 50U);
  exits(w(1), SIGKILL);
  EXPECT_EQ(machine->ledger().outstanding(), 100U) << "its home has not spoken";
  serve({s(0), s(1)}, {places(w(1), 1, 30)});
  EXPECT_EQ(machine->ledger().committed(), 30U);
  EXPECT_EQ(machine->ledger().outstanding(), 50U);
  EXPECT_EQ(fetch(w(0), 50, 50), 20U) << "what is left of it";
  EXPECT_EQ(machine->ledger().committed(), 80U);
}

TEST_F(JobServersTest, APlaceThatWasNeverGrantedIsNotCommitted) {
  start();
  fetch(w(0), 0, 50);
  fetch(w(1), 0, 20);
  exits(w(1), SIGKILL);
  serve({s(0), s(1)}, {places(w(1), 1, 90)});
  EXPECT_EQ(machine->ledger().committed(), 0U);
  EXPECT_EQ(machine->ledger().outstanding(), 50U) << "all of it comes back";
}

TEST_F(JobServersTest, ASuccessorBeginsWithoutRecordsAndTheOthersGoOn) {
  start();
  fetch(w(0), 0, 50);
  fetch(w(1), 0, 50);
  exits(w(1), SIGKILL);
  started_again(w(1, 2));
  EXPECT_FALSE(machine->server_group().workers().is_admitted(w(1, 2)));
  serve({s(0), s(1)}, {places(w(1), 1, 10)});
  EXPECT_TRUE(machine->server_group().workers().is_admitted(w(1, 2)));
  EXPECT_EQ(machine->generation(), Generation{1});
  EXPECT_EQ(fetch(w(1, 2), 0, 50), 40U);
  EXPECT_EQ(fetch(w(0), 50, 0), 0U);
  EXPECT_EQ(machine->ledger().committed(), 60U);
}

TEST_F(JobServersTest, RecordsThatKillThreeWorkersEndTheJobAndThoseOfKilledOnesDoNot) {
  for (const int signal : {SIGKILL, SIGSEGV}) {
    outcome.reset();
    journal = {};
    number.clear();
    seq.clear();
    start();
    for (std::uint32_t attempt = 1; attempt <= 3 && !machine->lifecycle().outcome(); ++attempt) {
      const Member m = w(1, attempt);
      if (attempt > 1) {
        started_again(m);
        serve({s(0), s(1)});
      }
      ASSERT_GT(fetch(m, 0, 20), 0U);
      exits(m, signal);
      serve({s(0), s(1)}, {places(m, 1, 0)});
    }
    const auto& end = machine->lifecycle().outcome();
    EXPECT_EQ(end.has_value(), signal == SIGSEGV);
    if (end) {
      EXPECT_EQ(end->code, 4) << end->first_cause;
    }
  }
}

TEST_F(JobServersTest, ALostServerTakesAllBackToTheCheckpointAndItsRecords) {
  start();
  fetch(w(0), 0, 40);
  fetch(w(1), 0, 40);
  fetch(w(0), 16, 0);
  const auto cuts = sent<wire::PsCut>(order_checkpoint());
  ASSERT_EQ(cuts.size(), 2U);
  const std::uint64_t cut = cuts[0].second.number;
  fetch(w(0), 32, 0);  // the cut was made at an earlier step
  says(s(1), wire::PsSaved{cut, 4, 0, {}, {}, ""});
  const auto stored = all<job::StoreCheckpoint>(
      says(s(0), wire::PsSaved{cut, 4, 0, {}, {places(w(0), 1, 16), places(w(1), 1, 8)}, ""}));
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].written.step, Step{4});
  EXPECT_EQ(stored[0].written.directory, "/run/" + cuts[0].second.directory);
  feed(job::CheckpointStored{cut, Step{4}, "s4", ""});
  EXPECT_EQ(machine->ledger().committed(), 32U);

  exits(s(1), SIGKILL);
  EXPECT_EQ(machine->server_group().serving(), false);
  started_again(s(1, 2));
  joins(w(0));
  const auto lost = joins(w(1));
  ASSERT_EQ(all<job::FindCheckpoint>(lost).size(), 1U);
  number.clear();
  const auto begun = feed(job::CheckpointFound{"/run/checkpoints/s4", Step{4},
                                               stored[0].ledger_image, stored[0].accounts_image});
  ASSERT_EQ(sent<wire::PsServe>(begun).size(), 2U);
  EXPECT_EQ(sent<wire::PsServe>(begun)[0].second.version, 4U);
  EXPECT_EQ(machine->ledger().committed(), 24U) << "16 and 8, as the model has it";
  serve({s(0), s(1, 2)});
  EXPECT_TRUE(machine->server_group().serving());
  EXPECT_EQ(train_the_rest(), 76U);
}

TEST_F(JobServersTest, TheModelIsWhatTheServersWriteAndTheyLeaveLast) {
  start();
  EXPECT_EQ(train_the_rest(), 100U);
  EXPECT_TRUE(machine->ledger().complete());
  end_of(1, {w(0)});
  EXPECT_EQ(machine->lifecycle().phase().phase, 1U) << "w1 is still in it";
  end_of(1, {w(1)});
  EXPECT_EQ(machine->lifecycle().phase().what, wire::PhaseKind::kFinish);
  const std::uint64_t cut = machine->server_group().image().cut;
  ASSERT_GT(cut, 0U);
  says(s(0), wire::PsSaved{cut, 9, 0, {}, {places(w(0), 1, 100)}, ""});
  says(s(1), wire::PsSaved{cut, 9, 0, {}, {}, "the disk is full"});
  EXPECT_EQ(machine->server_group().image().cut, 0U);
  clock.advance(std::chrono::seconds(3));
  feed(job::TimePassed{});
  const std::uint64_t again = machine->server_group().image().cut;
  ASSERT_GT(again, cut) << "it is asked for again";
  says(s(0), wire::PsSaved{again, 9, 0, {}, {places(w(0), 1, 100)}, ""});
  ASSERT_EQ(all<job::StoreCheckpoint>(says(s(1), wire::PsSaved{again, 9, 0, {}, {}, ""})).size(),
            1U);
  const auto told = sent<wire::Leave>(feed(job::CheckpointStored{again, Step{9}, "s9", ""}));
  ASSERT_EQ(told.size(), 2U) << "workers first";
  exits(w(0), 0);
  const auto last = [&] {
    wire::ProcessExited exit;
    exit.code = 0;
    return feed(lifecycle::WorkerExited{w(1), exit});
  }();
  EXPECT_EQ(sent<wire::Leave>(last).size(), 2U) << "then the servers";
  EXPECT_FALSE(outcome);
  exits(s(0), 0);
  exits(s(1), 0);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->state, JobEnd::kDone);
  EXPECT_EQ(outcome->code, 0);
}

TEST_F(JobServersTest, AStoppedJobKeepsACheckpointAndThenItsServersLeave) {
  start();
  fetch(w(0), 0, 40);
  const auto stopping = feed(lifecycle::StopRequested{"asked by me", std::chrono::seconds(30)});
  const auto cuts = sent<wire::PsCut>(stopping);
  ASSERT_EQ(cuts.size(), 2U);
  const std::uint64_t cut = cuts[0].second.number;
  says(s(0), wire::PsSaved{cut, 2, 0, {}, {places(w(0), 1, 8)}, ""});
  says(s(1), wire::PsSaved{cut, 2, 0, {}, {}, ""});
  EXPECT_EQ(sent<wire::Leave>(feed(job::CheckpointStored{cut, Step{2}, "s2", ""})).size(), 2U);
  exits(w(0), 0);
  exits(w(1), 0);
  exits(s(0), 0);
  exits(s(1), 0);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->state, JobEnd::kStopped);
  EXPECT_TRUE(outcome->resumable);
}

TEST_F(JobServersTest, AStoppedJobWaitsForItsOwnCheckpointAndNotForOneThatWasGivenUpForIt) {
  start();
  fetch(w(0), 0, 40);
  const auto stopping = feed(lifecycle::StopRequested{"asked by me", std::chrono::seconds(30)});
  const auto cuts = sent<wire::PsCut>(stopping);
  ASSERT_EQ(cuts.size(), 2U);
  const std::uint64_t cut = cuts[0].second.number;
  const job::CheckpointStored before{cut - 1, Step{1}, "s1", "another one was ordered"};
  EXPECT_TRUE(sent<wire::Leave>(feed(before)).empty());
  EXPECT_EQ(sent<wire::Leave>(feed(job::CheckpointStored{cut, Step{2}, "s2", ""})).size(), 2U);
}

TEST_F(JobServersTest, TheNextIncarnationGoesOnWithTheSameGroup) {
  start();
  fetch(w(0), 0, 50);
  exits(w(1), SIGKILL);
  open(with_servers());
  host("a");
  EXPECT_TRUE(machine->server_group().serving());
  clock.advance(std::chrono::seconds(1));
  feed(job::TimePassed{});
  serve({s(0), s(1)}, {places(w(1), 1, 0)});
  EXPECT_EQ(machine->ledger().outstanding(), 50U) << "w0 keeps what it holds";
  EXPECT_EQ(fetch(w(0), 24, 0), 0U);
  EXPECT_EQ(machine->ledger().committed(), 24U);
}

TEST_F(JobServersTest, APhaseThatWasCompleteEndsInTheNextIncarnation) {
  start();
  train_the_rest();
  end_of(1, {w(0)});
  open(with_servers());
  host("a");
  end_of(1, {w(0), w(1)});
  EXPECT_EQ(machine->lifecycle().phase().phase, 2U);
}

TEST_F(JobServersTest, ALostProcessOfAReplicatedServerCostsNothing) {
  const std::vector<Member> all = {w(0), w(1), s(0), s(1), s(2), s(3)};
  JobMachineConfig two = with_servers();
  two.spec.server_replicas = 2;
  begin(two, all);
  for (const Member m : all) joins(m);
  serve({s(0), s(1), s(2), s(3)});
  ASSERT_TRUE(machine->server_group().serving());
  fetch(w(0), 0, 50);
  wire::PsStats decided;
  decided.pushes_applied = 7;
  says(s(0), decided);
  says(s(2), decided);
  exits(s(0), SIGKILL);
  EXPECT_TRUE(machine->server_group().serving());
  EXPECT_EQ(machine->generation(), Generation{1});
  EXPECT_EQ(machine->ledger().outstanding(), 50U);
  std::uint64_t pushes = 0;
  for (const ServerReport& server : machine->report().servers) {
    pushes += server.said.pushes_applied;
    if (server.server == s(2).worker) {
      EXPECT_EQ(server.role, ServerRole::kAlone);
    }
  }
  EXPECT_EQ(pushes, 7U) << "which both have counted";
}

TEST_F(JobServersTest, OneOfTheTwoProcessesOfAServerMayBeEvictedAtATime) {
  const std::vector<Member> all = {w(0), w(1), s(0), s(1), s(2), s(3)};
  JobMachineConfig two = with_servers();
  two.spec.server_replicas = 2;
  begin(two, all);
  const lifecycle::EvictionRequested evict{"s0", "slow", std::chrono::seconds(2)};
  EXPECT_FALSE(machine->check(evict)) << "nobody has its rows";
  for (const Member m : all) joins(m);
  serve({s(0), s(1), s(2), s(3)});
  ASSERT_TRUE(machine->check(evict));
  const auto leave = sent<wire::Leave>(feed(evict));
  ASSERT_EQ(leave.size(), 1U);
  EXPECT_EQ(leave[0].first, s(0));
  EXPECT_FALSE(machine->check(lifecycle::EvictionRequested{"s2", "slow", {}}))
      << "the other one leaves";
  EXPECT_TRUE(sent<wire::Leave>(feed(lifecycle::EvictionRequested{"s2", "slow", {}})).empty());
  EXPECT_TRUE(machine->check(lifecycle::EvictionRequested{"s3", "slow", {}}));
  exits(s(0), 0);
  EXPECT_TRUE(machine->server_group().serving());
  EXPECT_EQ(machine->server_group().placement().role_of(s(2)), ServerRole::kAlone);
  EXPECT_FALSE(machine->check(lifecycle::EvictionRequested{"s2", "slow", {}}));
  EXPECT_EQ(machine->lifecycle().find(s(0).worker)->attempt, Attempt{2}) << "it comes back";
}

// ------------------------------------------------- a server without replicas that is moved

TEST_F(JobServersTest, TheServersOnADrainedHostMoveToAnotherOneAtATime) {
  start();
  HostState b;
  b.host = b.name = "b";
  b.room = 8;
  feed(job::HostWelcomed{b, {}});
  feed(lifecycle::HostDrained{"a", "by root@a"});
  feed(job::TimePassed{});
  const WorkerProcess* second = machine->lifecycle().find(s(2).worker);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->place.host, "b");
  feed(job::TimePassed{});
  EXPECT_EQ(machine->lifecycle().find(s(3).worker), nullptr) << "s0 is being moved";
}

class JobServerMoves : public JobServersTest {
 protected:
  void SetUp() override {
    start();
    HostState b;
    b.host = b.name = "b";
    b.room = 4;
    feed(job::HostWelcomed{b, {}});
    ASSERT_TRUE(machine->check(kEvict));
    feed(kEvict);
    const WorkerProcess* second = machine->lifecycle().find(s(2).worker);
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(second->place.host, "b");
    feed(lifecycle::WorkerStarted{s(2), 9});
  }
  void second_joins() {
    joins(s(2));
    serve({s(0), s(1), s(2)});
    EXPECT_EQ(machine->server_group().placement().role_of(s(2)), ServerRole::kJoining);
  }
  // s0 reports that its backup has the whole state.
  job::Effects backed() {
    wire::PsServing said{number[s(0)], {}};
    said.backed = 1;
    return says(s(0), said);
  }
  void expect_that_nobody_noticed() {
    EXPECT_TRUE(machine->server_group().serving());
    EXPECT_EQ(machine->generation(), Generation{1});
    EXPECT_FALSE(outcome);
  }
  const lifecycle::EvictionRequested kEvict{"s0", "slow", std::chrono::seconds(2)};
};

TEST_F(JobServerMoves, TheFirstProcessLeavesWhenTheSecondHasAllThatItHas) {
  EXPECT_FALSE(machine->check(kEvict)) << "it is being moved";
  second_joins();
  EXPECT_FALSE(machine->check(lifecycle::EvictionRequested{"s2", "slow", {}}));
  const auto leave = sent<wire::Leave>(backed());
  ASSERT_EQ(leave.size(), 1U);
  EXPECT_EQ(leave[0].first, s(0));
  exits(s(0), 0);
  expect_that_nobody_noticed();
  EXPECT_EQ(machine->server_group().placement().endpoints().front(), "/run/s2");
  EXPECT_EQ(machine->lifecycle().find(s(0).worker)->state, WorkerProcess::kRemoved);
  const auto servers = machine->report().servers;
  ASSERT_EQ(servers.size(), 2U);
  EXPECT_EQ(servers[1].server, s(2).worker);
}

TEST_F(JobServerMoves, ALostSecondProcessCostsNothingAndIsNotStartedAgain) {
  second_joins();
  exits(s(2), SIGKILL);
  expect_that_nobody_noticed();
  EXPECT_EQ(machine->lifecycle().find(s(2).worker)->state, WorkerProcess::kRemoved);
  EXPECT_TRUE(machine->check(kEvict)) << "it may be tried again";
}

TEST_F(JobServerMoves, WhereTheFirstIsLostBeforeTheSecondBeginsFromTheCheckpoint) {
  second_joins();
  exits(s(0), SIGKILL);
  EXPECT_FALSE(machine->server_group().serving());
  EXPECT_EQ(machine->lifecycle().find(s(0).worker)->state, WorkerProcess::kRemoved);
  EXPECT_TRUE(machine->lifecycle().find(s(2).worker)->running());
  EXPECT_FALSE(outcome);
}

TEST_F(JobServerMoves, WhereAnotherServerIsLostTheSecondGoesOnAndTheFirstLeaves) {
  second_joins();
  exits(s(1), SIGKILL);
  EXPECT_FALSE(machine->server_group().serving());
  EXPECT_TRUE(machine->lifecycle().find(s(0).worker)->leaving());
  EXPECT_TRUE(machine->lifecycle().find(s(2).worker)->running());
  exits(s(0), 0);
  EXPECT_EQ(machine->lifecycle().find(s(0).worker)->state, WorkerProcess::kRemoved);
}

TEST_F(JobServerMoves, TheNextIncarnationGoesOnWithIt) {
  second_joins();
  open(with_servers());
  host("a");
  HostState b;
  b.host = b.name = "b";
  b.room = 4;
  feed(job::HostWelcomed{b, {{s(2).worker, Attempt{1}, 9}}});
  EXPECT_EQ(machine->server_group().placement().role_of(s(2)), ServerRole::kJoining);
  const auto leave = sent<wire::Leave>(backed());
  ASSERT_EQ(leave.size(), 1U);
  EXPECT_EQ(leave[0].first, s(0));
}

TEST_F(JobServersTest, ACheckpointUnderWayIsStoredByTheNextIncarnation) {
  start();
  fetch(w(0), 0, 50);
  order_checkpoint();
  open(with_servers());
  host("a");
  clock.advance(std::chrono::seconds(3));
  const auto again = sent<wire::PsCut>(feed(job::TimePassed{}));
  ASSERT_EQ(again.size(), 2U);
  wire::PsSaved saved;
  saved.number = again[0].second.number;
  saved.places = {places(w(0), 1, 20)};
  says(s(0), saved);
  saved.places.clear();
  const auto stored = all<job::StoreCheckpoint>(says(s(1), saved));
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].written.places.front().place, 20U);
}

TEST_F(JobServersTest, ServersAreNoWorkersForOperators) {
  start();
  EXPECT_FALSE(machine->check(lifecycle::EvictionRequested{"s1", "slow", {}}));
  EXPECT_FALSE(machine->check(lifecycle::EvictionRequested{"a", "slow", {}}));
  HostState roomy;
  roomy.host = roomy.name = "a";
  roomy.room = 8;
  feed(job::HostWelcomed{roomy,
                         {{w(0).worker, Attempt{1}, 1},
                          {w(1).worker, Attempt{1}, 1},
                          {s(0).worker, Attempt{1}, 1},
                          {s(1).worker, Attempt{1}, 1}}});
  feed(lifecycle::WorkerCountRequested{3, "more"});
  EXPECT_NE(machine->lifecycle().find(WorkerId{'w', 2}), nullptr);
  EXPECT_EQ(machine->report().workers.size(), 3U);
  EXPECT_EQ(machine->report().servers.size(), 2U);
}

TEST_F(JobServersTest, FewerServersGoOnWhenTheLastCheckpointOfThoseBeforeIsStored) {
  start();
  fetch(w(0), 0, 40);
  EXPECT_FALSE(machine->check(lifecycle::ServerCountRequested{9, "no room"}));
  feed(lifecycle::ServerCountRequested{1, "a test"});
  EXPECT_EQ(machine->report().servers_wanted, 1U);
  EXPECT_TRUE(sent<wire::PsCut>(says(s(0), wire::PsServing{number[s(0)], {}})).empty());
  const auto cuts = sent<wire::PsCut>(says(s(1), wire::PsServing{number[s(1)], {}}));
  ASSERT_EQ(cuts.size(), 2U);
  wire::PsSaved saved;
  saved.number = cuts[0].second.number;
  saved.version = 3;
  says(s(1), saved);
  saved.places = {places(w(0), 1, 20)};
  const auto stores = all<job::StoreCheckpoint>(says(s(0), saved));
  ASSERT_EQ(stores.size(), 1U);
  EXPECT_TRUE(machine->server_group().closing());
  const job::Effects changed = feed(job::CheckpointStored{saved.number, Step{3}, "c", ""});
  EXPECT_EQ(sent<wire::Abort>(changed).size(), 2U);
  ASSERT_EQ(sent<wire::Leave>(changed).size(), 1U);
  EXPECT_EQ(sent<wire::Leave>(changed)[0].first, s(1));
  EXPECT_EQ(machine->report().servers_count, 1U);
  joins(w(0));
  EXPECT_EQ(all<job::FindCheckpoint>(joins(w(1))).size(), 1U);
}

// Each worker would end as it opens its tables, and the run could not be resumed either.
TEST_F(JobServersTest, FewerServersThanTheModelFitsAreRefused) {
  start();
  wire::Join says_how_many = join();
  says_how_many.key = "key of w0";
  says_how_many.fewest_servers = 2;
  says(w(0), says_how_many);
  const Status refused = machine->check(lifecycle::ServerCountRequested{1, "a test"});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.ends_with("ask for 2 or more")) << refused.error().message;
  feed(lifecycle::ServerCountRequested{1, "a test"});
  EXPECT_EQ(machine->report().servers_wanted, 0U);
}

TEST_F(JobServersTest, ServersWithoutWorkersAreAGroupOfTheNextIncarnation) {
  start();
  for (const Member m : {w(0), w(1)}) exits(m, SIGKILL);
  serve({s(0), s(1)}, {places(w(0), 1, 0), places(w(1), 1, 0)});
  open(with_servers());
  host("a");
  ASSERT_TRUE(machine->server_group().serving());
  feed(lifecycle::ServerCountRequested{1, "a test"});
  for (const Member m : {s(0), s(1)}) {
    const auto heard = says(m, wire::PsServing{number[m], {}});
    EXPECT_EQ(sent<wire::PsCut>(heard).size(), m == s(1) ? 2U : 0U) << "before the change";
  }
  EXPECT_TRUE(machine->server_group().closing());
}

}  // namespace
}  // namespace antdt::ctl
