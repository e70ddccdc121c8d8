// Who gets which device: the machine alone.
#include "antdtd/devices/device_leases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/antdtd/devices/leased_host.h"

namespace antdt::antdtd {
namespace {

using namespace leases;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(DeviceLeases, TwoJobsNeverHaveTheSameDevice) {
  Host host({gpu(0), gpu(1), gpu(2)});
  EXPECT_THAT(host.take(want(worker("a", 0))), ElementsAre("GPU-a"));
  EXPECT_THAT(host.take(want(worker("b", 0), 2)), ElementsAre("GPU-b", "GPU-c"));
  EXPECT_EQ(host.machine().free(), 0U);
  EXPECT_THAT(host.take(want(worker("a", 1))),
              ElementsAre(HasSubstr("asks for 1 GPU, and of the 3 here 3 are leased")));
  host.end(worker("a", 0));
  EXPECT_THAT(host.take(want(worker("a", 1))), ElementsAre("GPU-a"));
}

TEST(DeviceLeases, ADeviceOfAnotherAgentIsNotLeasedUntilItIsGivenBack) {
  wire::HostDevice taken = gpu(0);
  taken.elsewhere = true;
  Host host({taken, gpu(1)});
  EXPECT_EQ(host.machine().free(), 1U);
  EXPECT_EQ(host.machine().sharable(), 1U);
  EXPECT_THAT(host.take(want(worker("a", 0))), ElementsAre("GPU-b"));
  EXPECT_THAT(host.take(share(worker("a", 1))),
              ElementsAre(HasSubstr("of the 2 here 1 is leased; GPU 0 is leased by another agent "
                                    "of this machine; the log of this agent says how to find the "
                                    "process")));
  host.see({gpu(0), gpu(1)});
  EXPECT_THAT(host.take(want(worker("a", 1))), ElementsAre("GPU-a"));
}

TEST(DeviceLeases, TheDevicesOfALeaseAreLeasedBeforeAllOfItsProcessesBegin) {
  Host host({gpu(0), gpu(1), gpu(2)});
  EXPECT_THAT(host.machine().leased_uuids(), IsEmpty());
  EXPECT_THAT(host.take(rank(worker("a", 0), 0, 2)), ElementsAre("GPU-a"));
  EXPECT_THAT(host.machine().leased_uuids(), ElementsAre("GPU-a", "GPU-b"));
  EXPECT_THAT(host.take(rank(worker("a", 1), 1, 2)), ElementsAre("GPU-b"));
  host.end(worker("a", 0));
  EXPECT_THAT(host.machine().leased_uuids(), ElementsAre("GPU-a", "GPU-b"));
  host.end(worker("a", 1));
  EXPECT_THAT(host.machine().leased_uuids(), IsEmpty());
}

TEST(DeviceLeases, AnEndedLeaseIsFreeAndASecondEndChangesNothing) {
  Host host({gpu(0)});
  EXPECT_THAT(host.take(want(worker("a", 0))), ElementsAre("GPU-a"));
  host.end(worker("b", 0));
  EXPECT_EQ(host.machine().free(), 0U);
  host.end(worker("a", 0));
  host.end(worker("a", 0));
  EXPECT_EQ(host.machine().free(), 1U);
}

TEST(DeviceLeases, ALaterAttemptHasTheDevicesOfTheOneThatIsBeingEnded) {
  Host host({gpu(0), gpu(1)});
  EXPECT_THAT(host.take(want(worker("a", 0, 1))), ElementsAre("GPU-a"));
  EXPECT_THAT(host.take(want(worker("a", 0, 2))), ElementsAre("GPU-a"));
  host.end(worker("a", 0, 1));
  EXPECT_EQ(host.machine().free(), 1U) << "the later attempt holds it";
  host.end(worker("a", 0, 2));
  EXPECT_EQ(host.machine().free(), 2U);
}

TEST(DeviceLeases, ALaterAttemptGetsAnotherDeviceIfItsOwnFailed) {
  Host host({gpu(0), gpu(1)});
  EXPECT_THAT(host.take(want(worker("a", 0, 1))), ElementsAre("GPU-a"));
  host.see({gpu(0, "it has fallen off the bus"), gpu(1)});
  EXPECT_THAT(host.take(want(worker("a", 0, 2))), ElementsAre("GPU-b"));
}

TEST(DeviceLeases, SharedDevicesAreSpreadAndNobodyElseGetsThem) {
  Host host({gpu(0), gpu(1)});
  EXPECT_THAT(host.take(share(worker("a", 0))), ElementsAre("GPU-a"));
  EXPECT_THAT(host.take(share(worker("b", 0))), ElementsAre("GPU-b"));
  EXPECT_THAT(host.take(share(worker("a", 1))), ElementsAre("GPU-a"));
  EXPECT_THAT(host.take(share(worker("a", 2))), ElementsAre("GPU-b"));
  EXPECT_EQ(host.machine().sharable(), 2U);
  EXPECT_EQ(host.machine().free(), 0U);
  EXPECT_THAT(host.take(want(worker("c", 0))), ElementsAre(HasSubstr("2 are leased")));
}

TEST(DeviceLeases, ADeviceOfOneProcessAloneIsNotShared) {
  Host host({gpu(0), gpu(1)});
  EXPECT_THAT(host.take(want(worker("a", 0))), ElementsAre("GPU-a"));
  EXPECT_THAT(host.take(share(worker("b", 0))), ElementsAre("GPU-b"));
  EXPECT_THAT(host.take(share(worker("b", 1))), ElementsAre("GPU-b"));
  EXPECT_THAT(host.take(share(worker("b", 2), 2)), ElementsAre(HasSubstr("refused")));
}

TEST(DeviceLeases, UnhealthyDevicesAreNotLeasedAndTheRefusalSaysWhy) {
  Host host({gpu(0, "2 uncorrected ECC errors"), gpu(1)});
  EXPECT_EQ(host.machine().free(), 1U);
  EXPECT_THAT(host.take(want(worker("a", 0))), ElementsAre("GPU-b"));
  EXPECT_THAT(host.take(want(worker("a", 1))),
              ElementsAre(HasSubstr(
                  "of the 2 here 1 is leased; GPU 0 is not healthy: 2 uncorrected ECC errors")));
  host.see({gpu(0), gpu(1)});
  EXPECT_THAT(host.take(want(worker("a", 1))), ElementsAre("GPU-a"));
}

TEST(DeviceLeases, ADeviceThatFailsUnderAProcessIsToldOnceAndStaysWithIt) {
  Host host({gpu(0), gpu(1)});
  host.take(want(worker("a", 0)));
  host.see({gpu(0, "rows wait"), gpu(1, "rows wait")});
  EXPECT_THAT(host.troubles(), ElementsAre("w0 (attempt 1) of job a: GPU 0 (GPU-a): rows wait"));
  host.see({gpu(0, "rows wait"), gpu(1, "rows wait")});
  EXPECT_THAT(host.troubles(), IsEmpty());
  EXPECT_EQ(host.machine().problem_of(host.last()), "GPU 0 (GPU-a): rows wait");
  host.see({gpu(0), gpu(1)});
  EXPECT_EQ(host.machine().problem_of(host.last()), "");
  host.end(worker("a", 0));
  EXPECT_EQ(host.machine().free(), 2U);
}

TEST(DeviceLeases, ADeviceThatIsNotListedAnyMoreIsGoneForItsProcess) {
  Host host({gpu(0), gpu(1)});
  host.take(want(worker("a", 0)));
  host.see({gpu(1)});
  EXPECT_THAT(host.troubles(), ElementsAre(HasSubstr("the driver does not list it any more")));
  EXPECT_EQ(host.machine().devices().size(), 2U);
  host.end(worker("a", 0));
  host.see({gpu(1)});
  EXPECT_EQ(host.machine().devices().size(), 1U);
}

TEST(DeviceLeases, ALostDeviceThatDoesNotTellItsUuidIsKnownByItsIndex) {
  Host host({gpu(0), gpu(1)});
  host.take(want(worker("a", 0)));
  wire::HostDevice lost = gpu(0, "it has fallen off the bus");
  lost.uuid.clear();
  host.see({lost, gpu(1)});
  EXPECT_THAT(host.troubles(), ElementsAre(HasSubstr("GPU 0 (GPU-a): it has fallen off the bus")));
  EXPECT_EQ(host.machine().devices().size(), 2U);
}

TEST(DeviceLeases, NothingIsLeasedWhileNvmlDoesNotAnswer) {
  Host host({gpu(0), gpu(1)});
  host.take(want(worker("a", 0)));
  host.see({}, "NVML has not answered");
  EXPECT_THAT(host.troubles(), IsEmpty()) << "that says nothing about the devices";
  EXPECT_THAT(host.take(want(worker("b", 0))),
              ElementsAre(HasSubstr("leases none now: NVML has not answered")));
  EXPECT_EQ(host.machine().free(), 0U);
  EXPECT_EQ(host.machine().sharable(), 0U);
  host.see({gpu(0), gpu(1)});
  EXPECT_THAT(host.take(want(worker("b", 0))), ElementsAre("GPU-b"));
}

TEST(DeviceLeases, LeasesOfAnEarlierAgentAreHeldBeforeTheirDevicesAreKnown) {
  Host before({gpu(0), gpu(1)});
  before.take(want(worker("a", 0)));
  Host after({});
  Effects effects;
  after.machine().step(LeaseFound{worker("a", 0), before.last()}, effects);
  EXPECT_THAT(effects, Not(IsEmpty())) << "the driver does not list it";
  after.see({gpu(0), gpu(1)});
  EXPECT_EQ(after.machine().problem_of(before.last()), "");
  EXPECT_THAT(after.take(want(worker("b", 0))), ElementsAre("GPU-b"));
  EXPECT_THAT(after.take(want(worker("b", 1))), ElementsAre(HasSubstr("refused")));
  after.end(worker("a", 0));
  EXPECT_THAT(after.take(want(worker("b", 1))), ElementsAre("GPU-a"));
}

TEST(DeviceLeases, NothingIsLeasedWhileNvmlDoesNotBeginAndAProcessHasADeviceThatItNamed) {
  Host before({gpu(0), gpu(1)});
  before.take(want(worker("a", 0)));
  const ProcessKey key = worker("a", 0);
  for (const bool loaded : {true, false}) {
    for (const std::uint32_t counted : {0U, 2U}) {
      DeviceLeases after(counted);
      Effects effects;
      after.step(leases::seen_without_nvml("NVML is away", loaded, counted), effects);
      after.step(LeaseFound{key, before.last()}, effects);
      EXPECT_THAT(effects, IsEmpty()) << "nobody knows how its device is";
      EXPECT_EQ(after.free(), 0U);
      EXPECT_EQ(after.sharable(), 0U);
      EXPECT_THAT(after.trouble(), HasSubstr("NVML is away"));
      EXPECT_EQ(after.problem_of(before.last()), "") << "a failure is not the device's";
      after.step(want(worker("b", 0)), effects);
      ASSERT_EQ(effects.size(), 1U);
      EXPECT_TRUE(std::holds_alternative<leases::RefuseLease>(effects.front()));
      effects.clear();
      after.step(DevicesSeen{{gpu(0), gpu(1)}, ""}, effects);
      EXPECT_THAT(effects, IsEmpty());
      EXPECT_EQ(after.free(), 1U);
    }
  }
}

TEST(DeviceLeases, AProcessIsToldOfADeviceThatFailedBeforeNvmlBegan) {
  Host before({gpu(0)});
  before.take(want(worker("a", 0)));
  Host after({}, "NVML is away");
  Effects effects;
  after.machine().step(LeaseFound{worker("a", 0), before.last()}, effects);
  EXPECT_THAT(effects, IsEmpty());
  after.see({gpu(0, "rows wait")});
  EXPECT_THAT(after.troubles(), ElementsAre(HasSubstr("rows wait")));
}

TEST(DeviceLeases, CountedDevicesAreLeasedAgainOnceTheProcessesWithNamedOnesHaveEnded) {
  Host before({gpu(0), gpu(1)});
  before.take(want(worker("a", 0)));
  DeviceLeases after(2);
  Effects effects;
  after.step(leases::seen_without_nvml("no library", false, 2), effects);
  after.step(LeaseFound{worker("a", 0), before.last()}, effects);
  EXPECT_EQ(after.free(), 0U);
  after.step(leases::LeaseEnded{worker("a", 0)}, effects);
  EXPECT_EQ(after.free(), 2U);
}

TEST(DeviceLeases, DevicesThatNvmlMayNameYetAreNotLeasedByNumber) {
  DeviceLeases leases(2);
  Effects effects;
  leases.step(leases::seen_without_nvml("NVML does not begin", true, 2), effects);
  EXPECT_EQ(leases.free(), 0U);
  EXPECT_EQ(leases.trouble(), "NVML does not begin");
  leases.step(leases::seen_without_nvml("NVML does not begin", true, 0), effects);
  EXPECT_EQ(leases.trouble(), "") << "a host without devices has no trouble";
  EXPECT_EQ(leases.free(), 0U);
  leases.step(DevicesSeen{{gpu(0), gpu(1), gpu(2)}, ""}, effects);
  EXPECT_EQ(leases.free(), 3U);
}

TEST(DeviceLeases, AFoundLeaseThatContradictsAnotherIsLeftOut) {
  Host host({gpu(0)});
  host.take(want(worker("a", 0)));
  Effects effects;
  host.machine().step(LeaseFound{worker("b", 0), host.last()}, effects);
  EXPECT_FALSE(host.machine().holds(worker("b", 0)));
  host.machine().step(LeaseFound{worker("a", 1), host.last()}, effects);
  EXPECT_FALSE(host.machine().holds(worker("a", 1)));
}

// -------------------------------------------------------------------- torchrun

TEST(DeviceLeases, RanksOfAScriptSeeOneAnothersDevicesAndTheirOwnIsAtTheLocalRank) {
  Host host({gpu(0), gpu(1), gpu(2), gpu(3)});
  host.take(want(worker("other", 0)));
  for (std::uint32_t r = 0; r < 3; ++r) {
    const std::string own(1, static_cast<char>('b' + r));
    // in the order in which the messages happen to arrive
    const std::uint32_t place = (r + 1) % 3;
    host.take(rank(worker("a", place), place, 3));
    const auto env = environment(
        host.last(), {{"LOCAL_RANK", std::to_string(place)}, {"LOCAL_WORLD_SIZE", "3"}});
    EXPECT_EQ(value(env, "CUDA_VISIBLE_DEVICES"), "GPU-b,GPU-c,GPU-d");
    EXPECT_EQ(value(env, "LOCAL_RANK"), std::to_string(place)) << "cuda:LOCAL_RANK is its own";
    EXPECT_EQ(value(env, "LOCAL_WORLD_SIZE"), "3");
    EXPECT_EQ(own_devices(host.last()).front().uuid,
              "GPU-" + std::string(1, static_cast<char>('b' + place)));
  }
  EXPECT_EQ(host.machine().free(), 0U);
}

TEST(DeviceLeases, TheDevicesOfAScriptAreReservedFromItsFirstRankToTheEndOfItsLast) {
  Host host({gpu(0), gpu(1), gpu(2)});
  host.take(rank(worker("a", 0), 0, 2));
  EXPECT_THAT(host.take(want(worker("b", 0), 2)), ElementsAre(HasSubstr("refused")));
  EXPECT_THAT(host.take(want(worker("b", 0))), ElementsAre("GPU-c"));
  EXPECT_THAT(host.take(rank(worker("a", 1), 1, 2)), ElementsAre("GPU-b"));
  host.end(worker("a", 0));
  EXPECT_EQ(host.machine().free(), 0U) << "w1 sees both";
  host.end(worker("a", 1));
  EXPECT_EQ(host.machine().free(), 2U);
}

TEST(DeviceLeases, AScriptThatDoesNotFitAsAWholeGetsNothing) {
  Host host({gpu(0), gpu(1), gpu(2)});
  host.take(want(worker("b", 0)));
  EXPECT_THAT(host.take(rank(worker("a", 0), 0, 3)),
              ElementsAre(HasSubstr("3 GPUs with the 3 processes of its role here")));
  EXPECT_EQ(host.machine().free(), 2U);
}

TEST(DeviceLeases, TheNextAttemptsOfAScriptJoinTheLeaseOfTheOnesThatAreEnding) {
  Host host({gpu(0), gpu(1)});
  host.take(rank(worker("a", 0), 0, 2));
  host.take(rank(worker("a", 1), 1, 2));
  EXPECT_THAT(host.take(rank(worker("a", 0, 2), 0, 2)), ElementsAre("GPU-a"));
  EXPECT_THAT(host.take(rank(worker("a", 1, 2), 1, 2)), ElementsAre("GPU-b"));
  EXPECT_THAT(host.take(rank(worker("a", 1, 3), 0, 2)), ElementsAre(HasSubstr("refused")))
      << "place 0 is w0's";
}

TEST(DeviceLeases, AnAgentThatComesBackFindsAScriptsLeaseWhole) {
  Host before({gpu(0), gpu(1), gpu(2)});
  before.take(rank(worker("a", 1), 1, 2));
  const wire::DeviceLease of_w1 = before.last();
  Host after({gpu(0), gpu(1), gpu(2)});
  Effects effects;
  after.machine().step(LeaseFound{worker("a", 1), of_w1}, effects);
  EXPECT_EQ(after.machine().free(), 1U);
  EXPECT_THAT(after.take(rank(worker("a", 0), 0, 2)), ElementsAre("GPU-a"));
  EXPECT_EQ(after.machine().free(), 1U);
}

// ------------------------------------------------------------------------- MIG

TEST(DeviceLeases, AMigInstanceIsADeviceOfItsOwn) {
  Host host({instance(0, 0), instance(0, 1), gpu(1)});
  EXPECT_THAT(host.take(want(worker("a", 0))), ElementsAre("GPU-b")) << "whole GPUs first";
  EXPECT_THAT(host.take(want(worker("a", 1))), ElementsAre("MIG-00"));
  EXPECT_THAT(host.take(want(worker("b", 0))), ElementsAre("MIG-01"));
  EXPECT_THAT(host.take(want(worker("b", 1))), ElementsAre(HasSubstr("3 are leased")));
}

TEST(DeviceLeases, AProcessGetsNoTwoMigInstancesBecauseItCouldUseOnlyOne) {
  Host host({instance(0, 0), instance(0, 1)});
  EXPECT_THAT(host.take(want(worker("a", 0), 2)),
              ElementsAre(HasSubstr("MIG instances, of which a process can use only one")));
}

TEST(DeviceLeases, RanksOnMigInstancesSeeOnlyTheirOwnWhichIsDeviceZero) {
  Host host({instance(0, 0), instance(0, 1)});
  host.take(rank(worker("a", 1), 1, 2));
  const auto env =
      environment(host.last(), {{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}, {"RANK", "5"}});
  EXPECT_EQ(value(env, "CUDA_VISIBLE_DEVICES"), "MIG-01");
  EXPECT_EQ(value(env, "LOCAL_RANK"), "0");
  EXPECT_EQ(value(env, "LOCAL_WORLD_SIZE"), "1");
  EXPECT_EQ(value(env, "RANK"), "5");
}

// ---------------------------------------------------------------- near, counted

TEST(DeviceLeases, AProcessIsBoundToWhatIsNearestToItsDevices) {
  Host host({gpu(0), gpu(1), gpu(2), gpu(3)});
  host.take(want(worker("a", 0)));
  EXPECT_EQ(host.last().cpus, "0-15");
  EXPECT_EQ(host.last().numa_node, 0);
  host.take(want(worker("a", 1), 3));
  EXPECT_EQ(host.last().cpus, "0-15,16-31");
  EXPECT_EQ(host.last().numa_node, -1) << "its devices are on two nodes";
  host.end(worker("a", 0));
  LeaseWanted unbound = want(worker("a", 2));
  unbound.bound = false;
  host.take(unbound);
  EXPECT_EQ(host.last().cpus, "");
}

TEST(DeviceLeases, AHostWithoutNvmlCountsItsDevices) {
  DeviceLeases counted(2);
  EXPECT_EQ(counted.free(), 2U);
  Effects effects;
  counted.step(want(worker("a", 0), 2), effects);
  const wire::DeviceLease lease = std::get<GrantLease>(effects.front()).lease;
  EXPECT_EQ(counted.free(), 0U);
  EXPECT_EQ(value(environment(lease), "CUDA_VISIBLE_DEVICES"), "(unset)");
  EXPECT_EQ(value(environment(lease), "LOCAL_RANK"), "(unset)");
}

// ------------------------------------------------------------------------ chance

// check_invariants() runs after each of many random steps.
TEST(DeviceLeases, InvariantsHoldWhateverHappens) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return random() % n; };
    DeviceLeases leases;
    std::vector<ProcessKey> live;
    std::map<std::string, std::uint32_t> attempts;
    for (int step = 0; step < 300; ++step) {
      Effects effects;
      switch (below(4)) {
        case 0: {
          std::vector<wire::HostDevice> devices;
          for (std::uint32_t i = 0; i < 6; ++i) {
            if (below(8) == 0) continue;
            devices.push_back(i < 4 ? gpu(i, below(6) == 0 ? "sick" : "") : instance(4, i));
          }
          leases.step(DevicesSeen{devices, below(10) == 0 ? "silent" : ""}, effects);
          break;
        }
        case 1:
        case 2: {
          const std::string job(1, static_cast<char>('a' + below(3)));
          const std::uint32_t index = below(3);
          const bool gang = job == "c";
          LeaseWanted wanted = want(worker(job, index, ++attempts[job + std::to_string(index)]),
                                    gang ? 1 : 1 + below(2));
          wanted.shared = job == "b";
          if (gang) {
            wanted.place = below(5) == 0 ? below(3) : index;
            wanted.size = 3;
          }
          leases.step(wanted, effects);
          if (std::holds_alternative<GrantLease>(effects.front())) {
            live.push_back(wanted.key);
            const auto& lease = std::get<GrantLease>(effects.front()).lease;
            EXPECT_EQ(leases.problem_of(lease), "") << "seed " << seed;
            EXPECT_EQ(own_devices(lease).size(), wanted.each);
          }
          break;
        }
        default:
          if (live.empty()) break;
          std::swap(live[below(static_cast<std::uint32_t>(live.size()))], live.back());
          leases.step(LeaseEnded{live.back()}, effects);
          EXPECT_FALSE(leases.holds(live.back()));
          live.pop_back();
      }
    }
    for (const ProcessKey& key : live) EXPECT_TRUE(leases.holds(key)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace antdt::antdtd
