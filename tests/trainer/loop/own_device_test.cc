#include "trainer/loop/own_device.h"

#include <gtest/gtest.h>

namespace antdt::trainer {
namespace {

constexpr auto kX86 =
    "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 1\n"
    "model name\t: AMD EPYC 7763   64-Core Processor \n\nprocessor\t: 1\nmodel name\t: other\n";

TEST(OwnDevice, AProcessorIsNamedAsTheKernelDoesWithItsComputeThreads) {
  EXPECT_EQ(cpu_class(kX86, 4), "cpu:AMD EPYC 7763 64-Core Processor x4");
  EXPECT_EQ(cpu_class("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", 1),
            "cpu:0x41/0xd0c x1");
  EXPECT_EQ(cpu_class("processor\t: 0\ncpu\t\t: POWER9, altivec supported", 2),
            "cpu:POWER9, altivec supported x2");
}

TEST(OwnDevice, AProcessorThatTheKernelDoesNotNameHasNoClass) {
  EXPECT_EQ(cpu_class("", 1), "");
  EXPECT_EQ(cpu_class("processor\t: 0\nmodel name\n", 1), "");
}

TEST(OwnDevice, AnEmulatedWorkerHasTheDeviceThatJobTomlGivesIt) {
  TrainerConfig config;
  config.threads = 2;
  EXPECT_EQ(own_device(config, {'w', 0}, "model name : A"), (wire::Device{"cpu:A x2", 0}));
  config.model = "emulated";
  drill::Device device;
  device.name = "slow";
  device.memory = 32;
  device.workers = {"w1"};
  config.emulation.devices = {device};
  EXPECT_EQ(own_device(config, {'w', 1}, kX86), (wire::Device{"slow", 32}));
  EXPECT_EQ(own_device(config, {'w', 0}, kX86), wire::Device{});
}

}  // namespace
}  // namespace antdt::trainer
