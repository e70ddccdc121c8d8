// Tests of device classes, from a worker's join to the view of a solution.
#include <gtest/gtest.h>

#include "tests/ctl/job/job_fixture.h"

namespace antdt::ctl {
namespace {

class JobDevicesTest : public JobFixture {
 protected:
  static JobMachineConfig with_rule() {
    JobMachineConfig c = config();
    c.devices = {DeviceRule{{"w1"}, "", {"big", 4}}};
    return c;
  }
  static wire::Join on_cpu() {
    wire::Join j = join();
    j.device = {"cpu", 0};
    return j;
  }
  // Two workers join and settle; answers their parts.
  std::vector<wire::PlanEntry> settle() {
    place(2);
    for (std::uint32_t i = 0; i < 2; ++i) says(w(i), on_cpu());
    for (std::uint32_t i = 0; i < 2; ++i) says(w(i), wire::Address{"here"});
    std::vector<wire::PlanEntry> parts;
    for (std::uint32_t i = 0; i < 2; ++i) {
      for (const auto& [to, told] : sent<wire::Settle>(says(w(i), wire::Ready{}))) {
        for (const wire::PlanEntry& e : told.plan.entries) parts.push_back(e);
      }
    }
    return parts;
  }
  std::vector<Device> seen() {
    std::vector<Device> devices;
    for (const WorkerReport& r : machine->report().workers) devices.push_back(r.device);
    return devices;
  }
};

TEST_F(JobDevicesTest, AWorkersDeviceIsWhatItSaysUnlessJobTomlSaysAnother) {
  open(with_rule());
  settle();
  EXPECT_EQ(seen(), (std::vector<Device>{{"cpu", 0}, {"big", 4}}));
}

TEST_F(JobDevicesTest, TheNextJobDaemonKnowsThemWithoutAnyNewJoin) {
  open(with_rule());
  settle();
  open(with_rule());
  EXPECT_EQ(seen(), (std::vector<Device>{{"cpu", 0}, {"big", 4}}));
}

TEST_F(JobDevicesTest, PlansKeepToTheMicroBatchesThatAreWrittenOfAWorker) {
  JobMachineConfig c = with_rule();
  c.devices[0].device.max_micro_batch = 2;
  open(c);
  const std::vector<wire::PlanEntry> parts = settle();
  ASSERT_EQ(parts.size(), 2U);
  for (const wire::PlanEntry& part : parts) {
    const bool bounded = part.worker == w(1).worker;
    EXPECT_EQ(part.micro_batch, bounded ? 2U : 4U);
    EXPECT_EQ(part.accumulation, bounded ? 2U : 1U);
  }
}

TEST_F(JobDevicesTest, WhatAWorkerFoundOutByRunningOutOfMemoryIsKnownToTheNextJobDaemon) {
  open(config());
  settle();
  wire::Metrics metrics;
  metrics.sum.max_micro_batch = 2;
  says(w(1), metrics);
  EXPECT_EQ(seen(), (std::vector<Device>{{"cpu", 0}, {"cpu", 2}}));
  open(config());
  EXPECT_EQ(seen(), (std::vector<Device>{{"cpu", 0}, {"cpu", 2}}));
}

}  // namespace
}  // namespace antdt::ctl
