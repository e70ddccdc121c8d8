#include "antdtd/processes/supervision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace antdt::antdtd {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

ProcessKey key(std::uint32_t worker, std::uint32_t attempt = 1, const std::string& job = "job-1") {
  return {job, {{'w', worker}, Attempt{attempt}}};
}

StartRequest request(double cpus = 0, std::uint64_t memory_bytes = 0, std::uint32_t devices = 0) {
  wire::StartProcess start;
  start.command = {"/bin/true"};
  start.cpus = cpus;
  start.memory_bytes = memory_bytes;
  start.devices = devices;
  return std::make_shared<wire::StartProcess>(start);
}

template <class T>
std::vector<T> only(const std::vector<supervision::Effect>& effects) {
  std::vector<T> found;
  for (const supervision::Effect& effect : effects) {
    if (const T* e = std::get_if<T>(&effect)) found.push_back(*e);
  }
  return found;
}

class SupervisionTest : public ::testing::Test {
 protected:
  std::vector<supervision::Effect> step(const supervision::Input& event) {
    supervision::Effects effects;
    machine_.step(event, now_, effects);
    return effects;
  }
  void run(const ProcessKey& k, StartRequest start = request()) {
    step(supervision::StartWanted{k, std::move(start), 1});
    step(supervision::WorkerStarted{k, 100});
  }
  Supervision machine_{Capacity{4, 1000, 2}};
  MonoTime now_ = MonoTime{} + hours(1);
};

TEST_F(SupervisionTest, AStartThatDoesNotFitIsRefusedWithWhatIsFree) {
  run(key(0), request(3));
  const auto refused =
      only<supervision::RefuseStart>(step(supervision::StartWanted{key(1), request(1.5), 9}));
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].code, wire::RefusalCode::kFull);
  EXPECT_EQ(refused[0].seq, 9u);
  EXPECT_THAT(refused[0].reason, HasSubstr("1.5 cpus"));
  EXPECT_THAT(refused[0].reason, HasSubstr("1 of 4 cpus"));
  EXPECT_EQ(machine_.find(key(1)), nullptr);
}

TEST_F(SupervisionTest, MemoryAndDevicesAreLeasedToo) {
  run(key(0), request(0, 600, 1));
  EXPECT_EQ(
      only<supervision::RefuseStart>(step(supervision::StartWanted{key(1), request(0, 401), 1}))
          .size(),
      1u);
  EXPECT_EQ(
      only<supervision::RefuseStart>(step(supervision::StartWanted{key(1), request(0, 0, 2), 1}))
          .size(),
      1u);
  EXPECT_EQ(only<supervision::LaunchProcess>(
                step(supervision::StartWanted{key(1), request(0, 400, 1), 1}))
                .size(),
            1u);
  EXPECT_EQ(machine_.free(), (Capacity{4, 0, 0}));
}

wire::HostDevice device(std::uint32_t index, std::string problem = "") {
  wire::HostDevice device;
  device.index = index;
  device.uuid = "GPU-" + std::to_string(index);
  device.problem = std::move(problem);
  return device;
}

TEST_F(SupervisionTest, AnOrderIsLaunchedWithTheDevicesThatItLeases) {
  step(leases::DevicesSeen{{device(0), device(1)}, ""});
  const auto first =
      only<supervision::LaunchProcess>(step(supervision::StartWanted{key(0), request(0, 0, 1), 1}));
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].start->lease->devices.at(0).uuid, "GPU-0");
  const auto second = only<supervision::LaunchProcess>(
      step(supervision::StartWanted{key(0, 1, "job-2"), request(0, 0, 1), 1}));
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].start->lease->devices.at(0).uuid, "GPU-1");
  const auto refused =
      only<supervision::RefuseStart>(step(supervision::StartWanted{key(1), request(0, 0, 1), 1}));
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].code, wire::RefusalCode::kFull);
  EXPECT_THAT(refused[0].reason, testing::HasSubstr("no room for w1 (attempt 1) of job job-1: it "
                                                    "asks for 1 GPU"));
}

TEST_F(SupervisionTest, TheEndOfAProcessWhoseDeviceFailedSaysSo) {
  step(leases::DevicesSeen{{device(0)}, ""});
  run(key(0), request(0, 0, 1));
  const auto told = only<supervision::ReportDeviceTrouble>(
      step(leases::DevicesSeen{{device(0, "it has fallen off the bus")}, ""}));
  ASSERT_EQ(told.size(), 1U);
  ExitStatus aborted;
  aborted.signal = 6;
  const auto ends = only<supervision::ReportExit>(step(supervision::ProcessEnded{key(0), aborted}));
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].status.device, "GPU 0 (GPU-0): it has fallen off the bus");
  EXPECT_EQ(machine_.free().devices, 0U) << "it is not healthy";
}

TEST_F(SupervisionTest, AProcessThatDidItsWorkOnAFailingDeviceIsNoFailure) {
  step(leases::DevicesSeen{{device(0)}, ""});
  run(key(0), request(0, 0, 1));
  step(leases::DevicesSeen{{device(0, "rows wait")}, ""});
  ExitStatus done;
  done.code = 0;
  const auto ends = only<supervision::ReportExit>(step(supervision::ProcessEnded{key(0), done}));
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].status.device, "");
}

TEST_F(SupervisionTest, AFoundProcessKeepsItsDevicesAndAnEarlierReleasesCountsAsSome) {
  step(leases::DevicesSeen{{device(0), device(1), device(2)}, ""});
  wire::StartProcess leased = *request(0, 0, 1);
  leased.lease.emplace();
  leased.lease->devices = {{"GPU-1", 1, false, 0}};
  leased.lease->each = 1;
  step(supervision::ProcessFound{key(0), std::make_shared<wire::StartProcess>(leased), 77, {}});
  step(supervision::ProcessFound{key(1), request(0, 0, 1), 78, {}});
  EXPECT_EQ(machine_.free().devices, 1U);
  step(supervision::ProcessEnded{key(0), {}});
  EXPECT_EQ(machine_.free().devices, 2U);
}

TEST_F(SupervisionTest, AnEndGivesTheLeaseBackBeforeItIsAcknowledged) {
  run(key(0), request(4));
  step(supervision::ProcessEnded{key(0), {1, 0, {}, {}}});
  EXPECT_EQ(machine_.free().cpus, 4);
}

TEST_F(SupervisionTest, TwoJobsCannotLeaseTheSameCpus) {
  run(key(0, 1, "job-1"), request(3));
  EXPECT_EQ(only<supervision::RefuseStart>(
                step(supervision::StartWanted{key(0, 1, "job-2"), request(2), 1}))
                .size(),
            1u);
}

TEST_F(SupervisionTest, ANewerAttemptTakesOverTheLeaseOfTheOlder) {
  run(key(0, 1), request(4));
  const auto effects = step(supervision::StartWanted{key(0, 2), request(4), 1});
  EXPECT_TRUE(only<supervision::RefuseStart>(effects).empty());
  EXPECT_EQ(only<supervision::SignalProcess>(effects).size(), 1u);
}

TEST_F(SupervisionTest, AWaitingAttemptThatIsReplacedIsReportedAsStopped) {
  run(key(0, 1));
  step(supervision::StartWanted{key(0, 2), request(), 1});
  const auto effects = step(supervision::StartWanted{key(0, 3), request(), 1});
  const auto exits = only<supervision::ReportExit>(effects);
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].key, key(0, 2));
  const auto launched =
      only<supervision::LaunchProcess>(step(supervision::ProcessEnded{key(0, 1), {-1, 9, {}, {}}}));
  ASSERT_EQ(launched.size(), 1u);
  EXPECT_EQ(launched[0].key, key(0, 3));
}

TEST_F(SupervisionTest, AStopWithoutGraceKillsAtOnce) {
  run(key(0));
  const auto signals =
      only<supervision::SignalProcess>(step(supervision::StopWanted{key(0), Duration::zero()}));
  ASSERT_EQ(signals.size(), 1u);
  EXPECT_EQ(signals[0].force, Force::kKill);
}

TEST_F(SupervisionTest, AShorterGraceReplacesALongerAndALongerDoesNot) {
  run(key(0));
  step(supervision::StopWanted{key(0), seconds(60)});
  step(supervision::StopWanted{key(0), seconds(1)});
  step(supervision::StopWanted{key(0), seconds(90)});
  now_ += milliseconds(1001);
  const auto signals = only<supervision::SignalProcess>(step(supervision::TimePassed{}));
  ASSERT_EQ(signals.size(), 1u);
  EXPECT_EQ(signals[0].force, Force::kKill);
}

TEST_F(SupervisionTest, StoppingAProcessNobodyKnowsReportsItsEnd) {
  EXPECT_EQ(only<supervision::ReportExit>(step(supervision::StopWanted{key(7), seconds(1)})).size(),
            1u);
}

TEST_F(SupervisionTest, AStopThatOvertakesTheStartIsNotForgotten) {
  step(supervision::StartWanted{key(0), request(), 1});
  EXPECT_EQ(
      only<supervision::SignalProcess>(step(supervision::StopWanted{key(0), seconds(1)})).size(),
      1u);
  step(supervision::WorkerStarted{key(0), 100});
  EXPECT_EQ(machine_.find(key(0))->phase, supervision::Phase::kStopping);
}

TEST_F(SupervisionTest, TheRoleOfTheJobDaemonCannotBeStarted) {
  const ProcessKey daemon{"job-1", {kJobDaemon, Attempt{1}}};
  const auto refused =
      only<supervision::RefuseStart>(step(supervision::StartWanted{daemon, request(), 1}));
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].code, wire::RefusalCode::kInvalid);
}

TEST_F(SupervisionTest, CpusThatAreNoAmountAreRefusedAndChangeNothingOfWhatIsFree) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double cpus : {-1000.0, -infinity, infinity, std::nan("")}) {
    const auto effects = step(supervision::StartWanted{key(0), request(cpus), 9});
    const auto refused = only<supervision::RefuseStart>(effects);
    ASSERT_EQ(refused.size(), 1u) << cpus;
    EXPECT_EQ(refused[0].code, wire::RefusalCode::kInvalid);
    EXPECT_EQ(refused[0].seq, 9u);
    EXPECT_THAT(refused[0].reason,
                HasSubstr("cannot start w0 (attempt 1) of job job-1: it asks for"));
    EXPECT_EQ(effects.size(), 1u);
    EXPECT_EQ(machine_.find(key(0)), nullptr);
    EXPECT_EQ(machine_.free(), (Capacity{4, 1000, 2}));
  }
}

TEST_F(SupervisionTest, ALocalRankThatNoHostHasIsRefusedBeforeDevicesAreChosenForIt) {
  step(leases::DevicesSeen{{device(0), device(1)}, ""});
  const auto refusal = [this](std::uint32_t rank, std::uint32_t size) {
    wire::StartProcess start = *request(0, 0, 1);
    start.share_devices = true;
    start.local_rank = rank;
    start.local_size = size;
    const auto refused = only<supervision::RefuseStart>(
        step(supervision::StartWanted{key(0), std::make_shared<wire::StartProcess>(start), 1}));
    if (refused.empty()) return std::string();
    EXPECT_EQ(refused[0].code, wire::RefusalCode::kInvalid);
    return refused[0].reason;
  };
  EXPECT_THAT(refusal(0, std::numeric_limits<std::uint32_t>::max()),
              HasSubstr("4294967295 processes on this host, and 4096 are the most"));
  EXPECT_THAT(refusal(1, 0), HasSubstr("local rank 1 of 0"));
  EXPECT_THAT(refusal(2, 2), HasSubstr("local rank 2 of 2"));
  EXPECT_EQ(machine_.free().devices, 2U);
  EXPECT_EQ(refusal(1, 2), "");
}

TEST_F(SupervisionTest, AnAcknowledgedEndIsNotReportedAgainUnlessAskedFor) {
  run(key(0));
  step(supervision::ProcessEnded{key(0), {7, 0, {}, {}}});
  step(supervision::ExitAcknowledged{key(0)});
  now_ += seconds(10);
  EXPECT_TRUE(only<supervision::ReportExit>(step(supervision::TimePassed{})).empty());
  EXPECT_TRUE(only<supervision::ReportExit>(step(supervision::DaemonAttached{"job-1"})).empty());
  const auto effects = step(supervision::StartWanted{key(0), request(), 2});
  EXPECT_TRUE(only<supervision::LaunchProcess>(effects).empty());
  EXPECT_EQ(only<supervision::ReportExit>(effects).size(), 1u);
}

TEST_F(SupervisionTest, AJobThatIsOverIsForgottenWhenItsLastProcessIsGone) {
  run(key(0));
  run(key(1));
  EXPECT_EQ(only<supervision::SignalProcess>(step(supervision::JobOver{"job-1"})).size(), 2u);
  EXPECT_TRUE(only<supervision::ForgetJob>(step(supervision::ProcessEnded{key(0), {75, 0, {}, {}}}))
                  .empty());
  EXPECT_EQ(
      only<supervision::ForgetJob>(step(supervision::ProcessEnded{key(1), {75, 0, {}, {}}})).size(),
      1u);
  EXPECT_FALSE(machine_.knows("job-1"));
}

TEST_F(SupervisionTest, EndsThatNobodyAsksForAreForgottenAfterAWhile) {
  run(key(0));
  step(supervision::ProcessEnded{key(0), {0, 0, {}, {}}});
  now_ += hours(1) + seconds(1);
  EXPECT_EQ(only<supervision::ForgetJob>(step(supervision::TimePassed{})).size(), 1u);
}

TEST_F(SupervisionTest, TheNextWakeupIsTheNearestThingToDo) {
  EXPECT_EQ(machine_.next_wakeup(), std::nullopt);
  run(key(0));
  EXPECT_EQ(machine_.next_wakeup(), std::nullopt) << "no orphan timeout was given";
  step(supervision::StopWanted{key(0), seconds(3)});
  EXPECT_EQ(machine_.next_wakeup(), now_ + seconds(3));
  step(supervision::ProcessEnded{key(0), {0, 0, {}, {}}});
  EXPECT_EQ(machine_.next_wakeup(), now_ + seconds(1));
}

TEST_F(SupervisionTest, AJobOfWhichOnlyARecordWasFoundIsForgottenAfterAnHourWithoutItsDaemon) {
  EXPECT_TRUE(step(supervision::JobFound{"job-1"}).empty());
  ASSERT_EQ(machine_.next_wakeup(), now_ + hours(1));
  now_ += hours(1);
  EXPECT_EQ(only<supervision::ForgetJob>(step(supervision::TimePassed{})).size(), 1u);
  EXPECT_FALSE(machine_.knows("job-1"));
}

TEST_F(SupervisionTest, AJobIsOverUntilItsLastProcessHasEnded) {
  run(key(0));
  EXPECT_FALSE(machine_.is_over("job-1"));
  step(supervision::JobOver{"job-1"});
  EXPECT_TRUE(machine_.is_over("job-1"));
  step(supervision::ProcessEnded{key(0), {}});
  EXPECT_FALSE(machine_.is_over("job-1")) << "it is forgotten";
}

}  // namespace
}  // namespace antdt::antdtd
