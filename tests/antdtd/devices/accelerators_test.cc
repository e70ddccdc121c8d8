// Clocks that are bound, as a library reports that a file controls.
#include "antdtd/devices/accelerators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <thread>

#include "antdtd/host/process_probe.h"
#include "antdtd/shim/binding.h"
#include "core/os/fs.h"
#include "tests/antdtd/silent_devices.h"

namespace antdt::antdtd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::size_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

class AcceleratorsTest : public ::testing::Test {
 protected:
  AcceleratorsTest() { setenv("FAKE_NVML", path_.c_str(), 1); }
  ~AcceleratorsTest() override { unsetenv("FAKE_NVML"); }
  void say(const std::string& text) { ASSERT_TRUE(write_file_atomic(path_, text)); }

  TempDir dir_;
  std::string path_ = dir_.path() + "/devices";
};

TEST_F(AcceleratorsTest, ProcessesOfADeviceWithReducedClocksAreTold) {
  say("gpu reasons=1 pids=11\ngpu reasons=2 pids=12\n");  // idle; bound by the operator
  Accelerators devices(ANTDT_FAKE_NVML);
  ASSERT_TRUE(devices.await_look());
  EXPECT_THAT(devices.held_down(), IsEmpty());
  for (const int reason : {0x04, 0x08, 0x20, 0x40, 0x80}) {
    say("gpu pids=11\ngpu pids=12,13 reasons=" + std::to_string(reason + 1) + "\n");
    ASSERT_TRUE(devices.await_look());
    EXPECT_THAT(devices.held_down(), ElementsAre(12, 13)) << reason;
  }
  say("gpu pids=11\ngpu pids=12,13\n");
  ASSERT_TRUE(devices.await_look());
  EXPECT_THAT(devices.held_down(), IsEmpty());
}

TEST_F(AcceleratorsTest, ADeviceIsToldWithWhatNvmlKnowsOfIt) {
  say("gpu uuid=GPU-a name=H100 memory=80 numa=1 cpus=4-7 busy=30 reasons=96\n");
  Accelerators devices(ANTDT_FAKE_NVML);
  ASSERT_TRUE(devices.await_look());
  const Accelerators::Look look = devices.look();
  EXPECT_TRUE(look.watched);
  EXPECT_EQ(look.trouble, "");
  ASSERT_EQ(look.devices.size(), 1U);
  const wire::HostDevice& device = look.devices[0];
  EXPECT_EQ(device.uuid, "GPU-a");
  EXPECT_EQ(device.name, "H100");
  EXPECT_EQ(device.memory_bytes, 80U);
  EXPECT_EQ(device.pci, "00000000:01:00.0");
  EXPECT_EQ(device.numa_node, 1);
  EXPECT_EQ(device.cpus, "4-7");
  EXPECT_EQ(device.problem, "");
  EXPECT_EQ(device.utilisation_percent, 30U);
  EXPECT_EQ(device.clock_mhz, 1200U);
  EXPECT_EQ(device.most_clock_mhz, 1980U);
  EXPECT_EQ(device.clocks_held_down, "heat");
}

TEST_F(AcceleratorsTest, EachProblemOfADeviceIsNamed) {
  say("gpu uuid=GPU-a\n");
  Accelerators devices(ANTDT_FAKE_NVML);
  ASSERT_TRUE(devices.await_look());
  const auto problem = [&](const std::string& words) {
    say("gpu uuid=GPU-a " + words + "\n");
    EXPECT_TRUE(devices.await_look());
    const Accelerators::Look look = devices.look();
    EXPECT_EQ(look.devices.at(0).uuid, "GPU-a") << "it is still known";
    return look.devices.at(0).problem;
  };
  EXPECT_EQ(problem("ecc=0"), "");
  EXPECT_THAT(problem("ecc=1"), HasSubstr("1 uncorrected ECC error since"));
  EXPECT_THAT(problem("ecc=2"), HasSubstr("2 uncorrected ECC errors since"));
  // A GPU that antdtd keeps open cannot be reset.
  EXPECT_THAT(problem("pages=1"), HasSubstr("pages wait to be retired: stop antdtd and reset"));
  EXPECT_THAT(problem("rows=1"), HasSubstr("wait to be remapped: stop antdtd and reset"));
  EXPECT_THAT(problem("rowfailed=1"), HasSubstr("replace the device"));
  EXPECT_EQ(problem("lost=1"), "it has fallen off the bus");
  EXPECT_EQ(problem(""), "") << "it is healthy again";
}

TEST_F(AcceleratorsTest, ADeviceThatIsNotCountedAnyMoreIsStillTold) {
  say("gpu uuid=GPU-a\ngpu uuid=GPU-b\n");
  Accelerators devices(ANTDT_FAKE_NVML);
  ASSERT_TRUE(devices.await_look());
  say("gpu uuid=GPU-a\n");
  ASSERT_TRUE(devices.await_look());
  ASSERT_EQ(devices.look().devices.size(), 2U);
  EXPECT_EQ(devices.look().devices[1].uuid, "GPU-b");
  EXPECT_THAT(devices.look().devices[1].problem, HasSubstr("the driver cannot reach it (error 6"));
}

TEST_F(AcceleratorsTest, InstancesOfADividedGpuAreDevicesAndTheGpuIsNone) {
  say("gpu uuid=GPU-a memory=80 mig=MIG-1,MIG-2 ecc=1\ngpu uuid=GPU-b forbidden=1\n"
      "gpu uuid=GPU-c mig=\n");
  Accelerators devices(ANTDT_FAKE_NVML);
  ASSERT_TRUE(devices.await_look());
  const auto found = devices.look().devices;
  ASSERT_EQ(found.size(), 3U) << "the one that is somebody else's is not told";
  EXPECT_EQ(found[0].uuid, "MIG-1");
  EXPECT_EQ(found[1].uuid, "MIG-2");
  EXPECT_EQ(short_name(found[1]), "GPU 0 MIG 1");
  EXPECT_EQ(found[1].memory_bytes, 40U);
  EXPECT_THAT(found[1].problem, HasSubstr("ECC")) << "what is wrong with the GPU is with its parts";
  EXPECT_EQ(found[2].uuid, "GPU-c");
  EXPECT_THAT(found[2].problem, HasSubstr("it has no instances"));
}

TEST_F(AcceleratorsTest, NvmlThatDoesNotAnswerIsATroubleUntilItDoes) {
  say("gpu uuid=GPU-a\n");
  Accelerators devices(ANTDT_FAKE_NVML, std::chrono::milliseconds(10));
  ASSERT_TRUE(devices.await_look());
  say("gpu uuid=GPU-a\nhang\n");
  while (devices.look().trouble.empty()) std::this_thread::yield();
  EXPECT_THAT(devices.look().trouble, HasSubstr("has not answered for more than 0.01 s"));
  EXPECT_FALSE(devices.look().pending);
  say("gpu uuid=GPU-a\n");
  ASSERT_TRUE(devices.await_look());
  EXPECT_EQ(devices.look().trouble, "");
}

TEST_F(AcceleratorsTest, TheFirstLookIsAwaitedForSomeTimeOnly) {
  say("gpu uuid=GPU-a\nhang\n");
  Accelerators devices(ANTDT_FAKE_NVML);
  devices.await_first_look(std::chrono::milliseconds(1));
  EXPECT_TRUE(devices.look().pending);
  EXPECT_THAT(devices.look().trouble, HasSubstr("has not answered yet"));
  say("gpu uuid=GPU-a\n");
  devices.await_first_look(std::chrono::seconds(30));
  EXPECT_FALSE(devices.look().pending);
  EXPECT_EQ(devices.look().devices.size(), 1U);
}

TEST_F(AcceleratorsTest, AHostWithoutTheLibraryOrWhereItDoesNotBeginTellsNothing) {
  EXPECT_FALSE(Accelerators("libno-such-library.so.1").await_look());
  EXPECT_THAT(Accelerators("libno-such-library.so.1").held_down(), IsEmpty());
  EXPECT_THAT(Accelerators("libno-such-library.so.1").look().missing,
              AllOf(HasSubstr("libno-such-library.so.1"), HasSubstr("restart antdtd")));
  EXPECT_FALSE(Accelerators("libno-such-library.so.1").look().loaded);
  unsetenv("FAKE_NVML");
  EXPECT_FALSE(Accelerators(ANTDT_FAKE_NVML).await_look());
}

TEST_F(AcceleratorsTest, WhyNvmlDoesNotBeginIsToldInWords) {
  for (const auto& [said, words] :
       {std::pair{"init 9\n", "the driver is not loaded"},
        std::pair{"init 18\n", "another version than the library"},
        std::pair{"init 4\n", "access to /dev/nvidiactl"},
        std::pair{"init 12\n", "an error of the tests' NVML (error 12)"},
        std::pair{"", "it finds no GPU"}}) {
    say(said);
    const Accelerators devices(ANTDT_FAKE_NVML);
    devices.await_first_look(std::chrono::seconds(30));
    const Accelerators::Look look = devices.look();
    EXPECT_FALSE(look.watched) << said;
    EXPECT_FALSE(look.pending) << said;
    EXPECT_TRUE(look.loaded) << said;
    EXPECT_THAT(look.missing, AllOf(HasSubstr("does not begin"), HasSubstr(words))) << said;
  }
}

TEST_F(AcceleratorsTest, NvmlThatDoesNotBeginAtFirstIsTriedAgain) {
  for (const char* before : {"init 9\n", "init 18\n", ""}) {
    say(before);
    Accelerators devices(ANTDT_FAKE_NVML);
    devices.await_first_look(std::chrono::seconds(30));
    EXPECT_FALSE(devices.look().watched) << before;
    say("gpu uuid=GPU-a\n");
    while (!devices.look().watched) {
      devices.look_soon();
      std::this_thread::yield();
    }
    ASSERT_TRUE(devices.await_look());
    EXPECT_EQ(devices.look().missing, "");
    EXPECT_EQ(devices.look().trouble, "");
    ASSERT_EQ(devices.look().devices.size(), 1U);
    EXPECT_EQ(devices.look().devices[0].uuid, "GPU-a");
  }
}

TEST_F(AcceleratorsTest, ADeviceThatDoesNotAnswerDelaysTheEndByItsTimeoutAtMost) {
  SilentDevices silent(path_);
  std::thread([] {}).join();  // with the first thread, a sanitizer may start one of its own
  const std::size_t before = threads();
  Accelerators devices(ANTDT_FAKE_NVML);
  ASSERT_TRUE(silent.await_call());
  EXPECT_FALSE(devices.end(std::chrono::milliseconds(20)));
  EXPECT_THAT(devices.held_down(), IsEmpty());
  EXPECT_FALSE(devices.await_look());
  silent.answer();
  while (threads() > before) std::this_thread::yield();  // it ends by itself
}

TEST(CpuList, IsWrittenAndReadAsTheKernelDoes) {
  EXPECT_EQ(cpu_list({0b1011UL, 1UL}), "0-1,3,64");
  EXPECT_EQ(cpu_list({0UL}), "");
  EXPECT_THAT(parse_cpu_list("0-1,3,3"), ElementsAre(0, 1, 3));
  for (const char* wrong : {"a", "1-", "-1", "1,x", "9999", "1;2"}) {
    EXPECT_THAT(parse_cpu_list(wrong), IsEmpty()) << wrong;
  }
}

TEST(Binding, SaysWhatItCouldNotDo) {
  EXPECT_EQ(bind_to("", -1), "");
  EXPECT_THAT(bind_to("4000", -1), HasSubstr("it may use none of them"));
}

TEST_F(AcceleratorsTest, AProcessOrOneOfItsChildrenIsLookedFor) {
  const auto pid = static_cast<std::uint32_t>(getpid());
  EXPECT_FALSE(computes_on_any(pid, {}));
  EXPECT_TRUE(computes_on_any(pid, {pid}));
  EXPECT_TRUE(computes_on_any(static_cast<std::uint32_t>(getppid()), {pid})) << "of its parent";
  EXPECT_FALSE(computes_on_any(pid, {static_cast<std::uint32_t>(getppid())}));
}

}  // namespace
}  // namespace antdt::antdtd
