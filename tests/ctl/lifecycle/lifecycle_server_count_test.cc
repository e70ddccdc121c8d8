// The number of parameter servers changes while a job trains.
#include <gmock/gmock.h>

#include "tests/ctl/lifecycle/lifecycle_fixture.h"

namespace antdt::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Member s(std::uint32_t index, std::uint32_t attempt = 1) {
  return {WorkerId{'s', index}, Attempt{attempt}};
}

// Two servers and two workers that train, on hosts with room for more.
class ServerCountTest : public LifecycleTest {
 protected:
  void SetUp() override { begin(2); }
  void begin(std::uint32_t servers, std::uint32_t replicas = 1, std::uint32_t room = 4,
             Duration checkpoint_every = seconds(60)) {
    JobSpec job = spec();
    job.checkpoint_every = checkpoint_every;
    job.servers = servers;
    job.server_replicas = replicas;
    job.sync = SyncStrategy::kPsBsp;
    use(job);
    in_use = job;
    hosts(room);
    lifecycle::WorkersPlaced placed;
    for (std::uint32_t i = 0; i < servers * replicas; ++i)
      placed.workers.push_back({s(i).worker, i % 2 == 0 ? "a" : "b", i % 2});
    for (std::uint32_t i = 0; i < 2; ++i)
      placed.workers.push_back({w(i).worker, i % 2 == 0 ? "a" : "b", i % 2});
    step(placed);
    for (const PlacedWorker& p : placed.workers) comes_up({p.worker, Attempt{1}});
    settle({w(0), w(1)});
    step(lifecycle::StepCompleted{Step{1}});
  }
  void next_run(std::optional<std::vector<Member>> group = std::nullopt) {
    const LifecycleImage image = life.image();
    life = Lifecycle(in_use);
    life.restore(image, std::move(group));
  }
  Status asked(std::uint32_t count) {
    return life.check(lifecycle::ServerCountRequested{count, "a test"});
  }
  Effects ask(std::uint32_t count) {
    return step(lifecycle::ServerCountRequested{count, "a test"});
  }
  static std::uint64_t last_cut(const Effects& effects) {
    const auto orders = all<lifecycle::OrderCheckpoint>(effects);
    return orders.size() == 1 && orders[0].last ? orders[0].number : 0;
  }
  std::vector<std::string> servers_expected(const Effects& effects) {
    std::vector<std::string> ids;
    EXPECT_FALSE(all<lifecycle::ExpectMembers>(effects).empty());
    for (const WorkerProcess& p : life.workers()) {
      if (p.is_server() && p.running() && !p.stays_away())
        ids.push_back(to_string(p.place.worker) + (p.apart() ? " apart" : ""));
    }
    return ids;
  }
  static std::vector<std::string> started(const Effects& effects) {
    std::vector<std::string> ids;
    for (const auto& e : all<lifecycle::StartWorker>(effects))
      ids.push_back(to_string(e.member.worker));
    return ids;
  }
  static std::vector<std::string> leaving(const Effects& effects) {
    std::vector<std::string> ids;
    for (const auto& e : all<lifecycle::AskToLeave>(effects))
      ids.push_back(to_string(e.member.worker));
    return ids;
  }
  void become(std::uint32_t count, std::vector<std::uint32_t> added) {
    Effects effects = ask(count);
    for (const std::uint32_t i : added) effects = comes_up(s(i));
    ASSERT_GT(last_cut(effects), 0U);
    step(lifecycle::CheckpointConcluded{last_cut(effects), ""});
    ASSERT_EQ(life.servers(), count);
    step(lifecycle::GenerationEnded{});
    settle({w(0), w(1)});
  }

  JobSpec in_use;
};

TEST_F(ServerCountTest, AnAddedServerJoinsBesideTheGroupBeforeTheLastCheckpointIsOrdered) {
  const Effects begun = ask(4);
  EXPECT_THAT(started(begun), ElementsAre("s2", "s3"));
  EXPECT_THAT(servers_expected(begun), ElementsAre("s0", "s1", "s2 apart", "s3 apart"));
  EXPECT_EQ(last_cut(comes_up(s(2))), 0U);
  const std::uint64_t number = last_cut(comes_up(s(3)));
  ASSERT_GT(number, 0U);
  EXPECT_THAT(all<lifecycle::ChangeServers>(step(lifecycle::CheckpointConcluded{number - 1, ""})),
              IsEmpty());
  const Effects changed = step(lifecycle::CheckpointConcluded{number, ""});
  ASSERT_THAT(all<lifecycle::ChangeServers>(changed), SizeIs(1));
  EXPECT_EQ(all<lifecycle::ChangeServers>(changed)[0].count, 4U);
  EXPECT_THAT(servers_expected(changed), ElementsAre("s0", "s1", "s2", "s3"));
  EXPECT_THAT(leaving(changed), IsEmpty());
  EXPECT_EQ(life.servers_wanted(), 0U);
}

TEST_F(ServerCountTest, FewerServersLeaveWhenTheLastCheckpointIsStored) {
  const Effects begun = ask(1);
  EXPECT_THAT(leaving(begun), IsEmpty());
  const Effects changed = step(lifecycle::CheckpointConcluded{last_cut(begun), ""});
  EXPECT_THAT(leaving(changed), ElementsAre("s1"));
  EXPECT_THAT(servers_expected(changed), ElementsAre("s0"));
  EXPECT_THAT(asked(2).error().message, HasSubstr("s1 is about to leave"));
  EXPECT_TRUE(all<lifecycle::StartWorker>(step(lifecycle::WorkerExited{s(1), code(kExitResumable)}))
                  .empty());
  EXPECT_EQ(state_of(s(1).worker), "removed");
  EXPECT_TRUE(asked(2));
  EXPECT_THAT(started(ask(2)), ElementsAre("s1"));
  EXPECT_EQ(life.find(s(1).worker)->attempt, Attempt{2});
}

TEST_F(ServerCountTest, ALeaverThatDiesInsteadIsNotStartedAgain) {
  const Effects begun = ask(1);
  step(lifecycle::CheckpointConcluded{last_cut(begun), ""});
  EXPECT_TRUE(
      all<lifecycle::StartWorker>(step(lifecycle::WorkerExited{s(1), killed(SIGKILL)})).empty());
  EXPECT_EQ(state_of(s(1).worker), "removed");
  EXPECT_FALSE(life.outcome());
}

TEST_F(ServerCountTest, AnImpossibleNumberIsRefused) {
  EXPECT_THAT(asked(0).error().message, HasSubstr("0 servers are impossible: 1 to 64"));
  EXPECT_THAT(asked(65).error().message, HasSubstr("64 slices"));
  EXPECT_THAT(asked(7).error().message, HasSubstr("need 5 more processes, and the hosts have room "
                                                  "for 4: let workers leave"));
  EXPECT_TRUE(asked(6));
  ask(3);
  EXPECT_THAT(asked(4).error().message, HasSubstr("the servers become 3 already"));
  EXPECT_THAT(life.check(lifecycle::RestartRequested{s(0), "slow", seconds(1)}).error().message,
              HasSubstr("the servers become 3 now"));
  step(lifecycle::StopRequested{"operator", Duration::zero()});
  EXPECT_THAT(asked(3).error().message, HasSubstr("stopping"));
  use(spec());
  EXPECT_THAT(asked(3).error().message, HasSubstr("has no parameter servers"));
}

TEST_F(ServerCountTest, AServerThatIsMovedIsMovedFirst) {
  step(lifecycle::RestartRequested{s(0), "slow", seconds(1)});
  EXPECT_THAT(asked(3).error().message, HasSubstr("to be moved: try again soon"));
}

TEST_F(ServerCountTest, TheProcessThatAServerWasMovedToStaysInTheNextSize) {
  step(lifecycle::RestartRequested{s(0), "slow", seconds(1)});
  comes_up(s(2));
  step(lifecycle::ServerTakenOver{s(0)});
  step(lifecycle::WorkerExited{s(0), code(kExitResumable)});
  EXPECT_THAT(started(ask(3)), ElementsAre("s0")) << "s1 and s2 are there";
}

TEST_F(ServerCountTest, AFailedChangeIsTriedAgainAndThenGivenUp) {
  Effects effects = ask(1);
  for (int tries = 1; tries < 5; ++tries) {
    const std::uint64_t number = last_cut(effects);
    ASSERT_GT(number, 0U) << tries;
    const Effects failed = step(lifecycle::CheckpointConcluded{number, "no room"});
    EXPECT_THAT(all<lifecycle::KeepServers>(failed), SizeIs(1));
    EXPECT_EQ(last_cut(step(lifecycle::TimePassed{})), 0U) << "not at once";
    clock.advance(seconds(3));
    effects = step(lifecycle::TimePassed{});
  }
  const Effects given_up = step(lifecycle::CheckpointConcluded{last_cut(effects), "no room"});
  EXPECT_THAT(all<lifecycle::WriteNote>(given_up),
              ::testing::Contains(::testing::Field(&lifecycle::WriteNote::text,
                                                   "the job keeps its 2 servers: no "
                                                   "room")));
  EXPECT_EQ(life.servers_wanted(), 0U);
  EXPECT_EQ(life.servers(), 2U);
}

TEST_F(ServerCountTest, CheckpointsThatComeOftenDoNotHoldItUp) {
  begin(2, 1, 4, seconds(1));
  step(lifecycle::CheckpointConcluded{last_cut(ask(1)), "w0 was lost while it was written"});
  int others = 0;
  for (int i = 0; i < 4; ++i) {
    clock.advance(seconds(1));
    const Effects effects = step(lifecycle::TimePassed{});
    if (last_cut(effects) > 0) break;
    for (const auto& order : all<lifecycle::OrderCheckpoint>(effects)) {
      step(lifecycle::CheckpointConcluded{order.number, ""});
      ++others;
    }
  }
  EXPECT_EQ(others, 1);
  EXPECT_GT(life.image().last_cut, 0U);
}

TEST_F(ServerCountTest, AnAddedServerThatDiesIsStartedAgainAtNoCostOfTheJobs) {
  ask(3);
  const std::uint64_t number = last_cut(comes_up(s(2)));
  const Effects again = step(lifecycle::WorkerExited{s(2), killed(SIGKILL)});
  EXPECT_THAT(started(again), ElementsAre("s2"));
  EXPECT_THAT(all<lifecycle::KeepServers>(again), SizeIs(1)) << "nobody waits until it is back";
  EXPECT_FALSE(life.outcome()) << "the job bears no failure at all";
  step(lifecycle::CheckpointConcluded{number, ""});
  EXPECT_EQ(life.servers(), 2U);
  clock.advance(seconds(3));
  EXPECT_GT(last_cut(comes_up(s(2, 2))), number);
}

TEST_F(ServerCountTest, RequestingThePresentNumberGivesTheChangeUp) {
  ask(3);
  comes_up(s(2));
  ASSERT_TRUE(asked(2));
  const Effects given_up = ask(2);
  EXPECT_THAT(all<lifecycle::KeepServers>(given_up), SizeIs(1));
  EXPECT_THAT(leaving(given_up), ElementsAre("s2"));
  step(lifecycle::WorkerExited{s(2), code(kExitResumable)});
  EXPECT_EQ(state_of(s(2).worker), "removed");
  EXPECT_EQ(last_cut(step(lifecycle::TimePassed{})), 0U);
}

TEST_F(ServerCountTest, ALostGroupHasToMakeItsLastCheckpointAnew) {
  const std::uint64_t number = last_cut(ask(1));
  step(lifecycle::GenerationEnded{});
  EXPECT_THAT(all<lifecycle::ChangeServers>(step(lifecycle::CheckpointConcluded{number, ""})),
              IsEmpty());
  settle({w(0), w(1)});
  EXPECT_GT(last_cut(step(lifecycle::TimePassed{})), number);
}

TEST_F(ServerCountTest, APhaseWaitsForItsOwnLastCheckpoint) {
  const std::uint64_t number = last_cut(ask(1));
  EXPECT_THAT(all<lifecycle::OpenPhase>(train_done(1)), IsEmpty());
  EXPECT_THAT(all<lifecycle::OpenPhase>(step(lifecycle::CheckpointConcluded{number, "no room"})),
              SizeIs(1));
}

TEST_F(ServerCountTest, AStopGivesItUpAndTheGroupGoesOnUntilThen) {
  ask(1);
  const Effects stopped = step(lifecycle::StopRequested{"operator", seconds(10)});
  EXPECT_THAT(all<lifecycle::KeepServers>(stopped), SizeIs(1));
  EXPECT_FALSE(all<lifecycle::OrderCheckpoint>(stopped).at(0).last);
}

TEST_F(ServerCountTest, TheEndOfTrainingGivesItUp) {
  ask(3);
  for (const std::uint64_t phase : {1, 3}) {
    train_done(phase);
    step(lifecycle::PhaseDrained{phase + 1});
  }
  ASSERT_EQ(life.state(), JobState::kFinishing);
  EXPECT_EQ(life.servers_wanted(), 0U);
}

TEST_F(ServerCountTest, TheNextIncarnationOrdersTheLastCheckpointAgain) {
  const std::uint64_t before = last_cut(ask(1));
  next_run(std::vector<Member>{w(0), w(1)});
  EXPECT_EQ(life.servers_wanted(), 1U);
  EXPECT_GT(last_cut(step(lifecycle::TimePassed{})), before);
}

TEST_F(ServerCountTest, AGroupThatHasNoWorkerInTheNextIncarnationStillChangesItsSize) {
  const std::uint64_t before = last_cut(ask(1));
  next_run(std::vector<Member>{});
  EXPECT_GT(last_cut(step(lifecycle::TimePassed{})), before);
}

TEST_F(ServerCountTest, WhileNoGroupIsSettledNoLastCheckpointIsOrdered) {
  ask(1);
  next_run();
  EXPECT_EQ(last_cut(step(lifecycle::TimePassed{})), 0U);
}

TEST_F(ServerCountTest, ARunThatIsResumedHasTheServersThatWereWanted) {
  become(3, {2});
  next_run();
  step(lifecycle::RunResumed{});
  EXPECT_EQ(life.servers(), 3U);
  EXPECT_EQ(state_of(s(2).worker), "waiting");
  begin(2);
  ask(4);
  next_run();
  const Effects resumed = step(lifecycle::RunResumed{});
  EXPECT_THAT(all<lifecycle::ChangeServers>(resumed), SizeIs(1));
  EXPECT_EQ(life.servers(), 4U);
  EXPECT_EQ(state_of(s(3).worker), "waiting");
  EXPECT_FALSE(life.find(s(3).worker)->apart());
}

TEST_F(ServerCountTest, WithReplicasAServerComesAndGoesWithBothOfItsProcesses) {
  begin(2, 2, 6);
  become(3, {4, 5});
  const Effects fewer = ask(1);
  const Effects changed = step(lifecycle::CheckpointConcluded{last_cut(fewer), ""});
  EXPECT_THAT(leaving(changed), ElementsAre("s2", "s3", "s4", "s5"));
}

TEST_F(ServerCountTest, AServerIsMovedBySizesThatAreInForce) {
  become(3, {2});
  const auto moved = step(lifecycle::RestartRequested{s(0), "slow", seconds(1)});
  EXPECT_THAT(started(moved), ElementsAre("s3"));
}

TEST_F(ServerCountTest, AServerIsMovedToTheHostThatWasChosenForIt) {
  step(lifecycle::HostCameUp{host("c", 2, 1)});
  const auto moved = step(lifecycle::RestartRequested{s(0), "slow", seconds(1), "c"});
  ASSERT_THAT(all<lifecycle::StartWorker>(moved), SizeIs(1));
  EXPECT_EQ(all<lifecycle::StartWorker>(moved)[0].host, "c") << "host b has more room than c";
}

// The worker of a lost host waits for room, and the server that dies meanwhile waits for its delay.
TEST_F(ServerCountTest, AWorkerThatWaitsDoesNotGetTheRoomOfAServerThatIsStartedAgainLater) {
  JobSpec job = spec();
  job.budgets = {{"host", 9}, {"signal", 9}};
  job.servers = 1;
  job.sync = SyncStrategy::kPsBsp;
  use(job);
  hosts(2);
  step(lifecycle::WorkersPlaced{
      {{s(0).worker, "a", 0}, {w(0).worker, "a", 0}, {w(1).worker, "b", 1}}});
  for (const Member& member : {s(0), w(0), w(1)}) comes_up(member);
  settle({w(0), w(1)});
  step(lifecycle::StepCompleted{Step{1}});
  EXPECT_THAT(started(step(lifecycle::HostLost{"b", "silent"})), IsEmpty());
  for (std::uint32_t attempt = 1; life.find(s(0).worker)->state != WorkerProcess::kWaiting;
       ++attempt) {
    ASSERT_LT(attempt, 9U);
    const Effects effects = step(lifecycle::WorkerExited{s(0, attempt), killed(SIGKILL)});
    for (const std::string& id : started(effects)) EXPECT_EQ(id, "s0");
    step(lifecycle::WorkerStarted{s(0, attempt + 1), 200 + attempt});
  }
  clock.advance(minutes(1));
  EXPECT_THAT(started(step(lifecycle::TimePassed{})), ElementsAre("s0"));
  EXPECT_EQ(state_of(w(1).worker), "waiting");
}

// Two servers and four workers; the host b, which is lost, has a server and two of the workers.
class FullHostsTest : public ServerCountTest {
 protected:
  void begin_full(std::uint32_t workers_on_a, const Domains& pinned_to = {},
                  std::uint32_t replicas = 1) {
    JobSpec job = spec();
    job.budgets = {{"host", 9}};
    job.servers = 2 / replicas;
    job.server_replicas = replicas;
    job.sync = SyncStrategy::kPsBsp;
    job.pinned_to = pinned_to;
    use(job);
    hosts(1 + workers_on_a);
    lifecycle::WorkersPlaced placed{{{s(0).worker, "a", 0}, {s(1).worker, "b", 1}}};
    std::vector<Member> group;
    for (std::uint32_t i = 0; i < workers_on_a + 1; ++i) {
      const bool on_a = i < workers_on_a;
      placed.workers.push_back({w(i).worker, on_a ? "a" : "b", on_a ? 0U : 1U});
      group.push_back(w(i));
    }
    step(placed);
    for (const PlacedWorker& p : placed.workers) comes_up({p.worker, Attempt{1}});
    settle(group);
    step(lifecycle::StepCompleted{Step{1}});
    EXPECT_THAT(started(step(lifecycle::HostLost{"b", "silent"})), IsEmpty());
  }
  Effects later(Duration time) {
    clock.advance(time);
    return step(lifecycle::TimePassed{});
  }
};

TEST_F(FullHostsTest, AWorkerGivesItsPlaceToAServerThatFindsNoRoomAndComesBackWhenThereIsSome) {
  begin_full(2);
  EXPECT_THAT(leaving(later(seconds(9))), IsEmpty()) << "the host may come back";
  const Effects effects = later(seconds(2));
  EXPECT_THAT(leaving(effects), ElementsAre("w1"));
  const auto notes = all<lifecycle::WriteNote>(effects);
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_EQ(notes[0].kind, "gives-place");
  EXPECT_THAT(notes[0].text, HasSubstr("s1 has lost its host, and no other host has room for it: "
                                       "w1 on a gives it its place"));
  EXPECT_THAT(leaving(later(seconds(1))), IsEmpty()) << "one is enough";
  EXPECT_THAT(started(step(lifecycle::WorkerExited{
                  w(1), wire::ProcessExited{kExitResumable, 0, "", "", ""}})),
              ElementsAre("s1"));
  EXPECT_EQ(state_of(w(1).worker), "waiting");
  EXPECT_EQ(state_of(w(2).worker), "waiting");
  EXPECT_THAT(started(step(lifecycle::HostCameUp{host("b", 1, 3)})), ElementsAre("w1", "w2"));
}

TEST_F(FullHostsTest, TheLastWorkerStays) {
  begin_full(1);
  EXPECT_THAT(leaving(later(minutes(1))), IsEmpty());
}

TEST_F(FullHostsTest, TheLastWorkerOfADomainStays) {
  begin_full(2, Domains({{"east", {}, {"w0"}}, {"west", {}, {"w1", "w2"}}}));
  EXPECT_THAT(leaving(later(minutes(1))), IsEmpty());
}

TEST_F(FullHostsTest, NobodyGivesItsPlaceToABackup) {
  begin_full(2, {}, 2);
  EXPECT_EQ(state_of(s(1).worker), "waiting");
  EXPECT_THAT(leaving(later(minutes(1))), IsEmpty());
}

}  // namespace
}  // namespace antdt::ctl
