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
#include "core/os/fs.h"
#include "tests/antdtd/silent_devices.h"

namespace antdt::antdtd {
namespace {

using ::testing::ElementsAre;
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

TEST_F(AcceleratorsTest, AHostWithoutTheLibraryOrWhereItDoesNotBeginTellsNothing) {
  EXPECT_FALSE(Accelerators("libno-such-library.so.1").await_look());
  EXPECT_THAT(Accelerators("libno-such-library.so.1").held_down(), IsEmpty());
  unsetenv("FAKE_NVML");
  EXPECT_FALSE(Accelerators(ANTDT_FAKE_NVML).await_look());
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

TEST_F(AcceleratorsTest, AProcessOrOneOfItsChildrenIsLookedFor) {
  const auto pid = static_cast<std::uint32_t>(getpid());
  EXPECT_FALSE(computes_on_any(pid, {}));
  EXPECT_TRUE(computes_on_any(pid, {pid}));
  EXPECT_TRUE(computes_on_any(static_cast<std::uint32_t>(getppid()), {pid})) << "of its parent";
  EXPECT_FALSE(computes_on_any(pid, {static_cast<std::uint32_t>(getppid())}));
}

}  // namespace
}  // namespace antdt::antdtd
