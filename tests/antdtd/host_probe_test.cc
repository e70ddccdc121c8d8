// Tests how the kernel's counters are read, and of the difference between two readings.
#include "antdtd/host/host_probe.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "antdtd/host/process_probe.h"
#include "core/os/fs.h"

namespace antdt::antdtd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const ProcessKey kProbed{"ctr-1", {{'w', 3}, Attempt{2}}};
const MonoTime kThen = MonoTime{} + std::chrono::hours(1);

TEST(HostProbe, ReadsWhatTheKernelWrites) {
  EXPECT_EQ(parse_schedstat("168674 8116871 2\n"), (ThreadTimes{168674, 8116871}));
  EXPECT_EQ(parse_throttled("usage_usec 5\nnr_throttled 2\nthrottled_usec 42\n"), 42U);
  EXPECT_EQ(parse_pressure("some avg10=99.87 avg60=97.69 avg300=56.41 total=6838155667\n"
                           "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"),
            6838155667U);
  EXPECT_EQ(parse_stolen("cpu  100 20 30 400 5 6 7 15 9 9\ncpu0 1 2 3 4 5 6 7 8 9 9\n"),
            (StolenTicks{15, 583}));
}

TEST(HostProbe, AnUnreadableFileGivesNoValue) {
  for (const char* text : {"", "\n", "some", "full avg10=0.00 total=3\n", "nonsense\n", "cpu 1 2\n",
                           "usage_usec 5\n", "12", "total=3", "some total=x\n"}) {
    EXPECT_EQ(parse_schedstat(text), std::nullopt) << text;
    EXPECT_EQ(parse_throttled(text), std::nullopt) << text;
    EXPECT_EQ(parse_pressure(text), std::nullopt) << text;
    EXPECT_EQ(parse_stolen(text), std::nullopt) << text;
  }
}

TEST(HostProbe, TheDifferenceOfTwoReadingsCoversTheTimeBetweenThem) {
  HostCounts before;
  before.threads = {{1, {1'000'000, 2'000'000}}, {2, {50'000'000, 0}}};
  before.throttled_us = 100;
  before.ticks = {10, 1000};
  before.cpu_stalled_us = 5000;
  HostCounts after;
  after.threads = {{1, {3'000'000, 9'000'000}}, {7, {500'000, 250'000}}};
  after.throttled_us = 700'100;
  after.ticks = {60, 1200};
  after.cpu_stalled_us = 405'000;
  after.io_stalled_us = 3;
  after.memory_stalled_us = 4;
  const wire::HostProbe probe = difference(before, after, seconds(1));
  EXPECT_EQ(probe.looked_us, 1'000'000U);
  EXPECT_EQ(probe.ran_us, 2500U) << "thread 2 has ended, thread 7 is new";
  EXPECT_EQ(probe.queued_us, 7250U);
  EXPECT_EQ(probe.throttled_us, 700'000U);
  EXPECT_EQ(probe.stolen_us, 250'000U) << "50 of 200 ticks";
  EXPECT_EQ(probe.cpu_stalled_us, 400'000U);
  EXPECT_EQ(probe.io_stalled_us, 3U);
  EXPECT_EQ(probe.memory_stalled_us, 4U);
}

TEST(HostProbe, CountersThatFellBackOrStoodCountNothing) {
  HostCounts before;
  before.threads = {{1, {9, 9}}};
  before.throttled_us = 9;
  before.ticks = {9, 9};
  const wire::HostProbe probe = difference(before, HostCounts{}, seconds(1));
  EXPECT_EQ(probe.ran_us + probe.queued_us + probe.throttled_us + probe.stolen_us, 0U);
}

TEST(ProcessProbes, ACgroupsOwnPressureAndThrottlingGoBeforeTheHosts) {
  TempDir dir;
  const auto write = [&](const std::string& path, const std::string& text) {
    const std::string full = dir.path() + path;
    ASSERT_TRUE(make_directories(full.substr(0, full.find_last_of('/'))));
    ASSERT_TRUE(write_file_atomic(full, text));
  };
  write("/proc/7/task/7/schedstat", "4000 5000 1\n");
  write("/proc/7/task/9/schedstat", "1000 2000 1\n");
  write("/proc/stat", "cpu  1 1 1 1 1 1 1 3\n");
  write("/proc/pressure/cpu", "some avg10=0 avg60=0 avg300=0 total=11\n");
  write("/proc/pressure/io", "some avg10=0 avg60=0 avg300=0 total=22\n");
  write("/group/cpu.stat", "throttled_usec 33\n");
  write("/group/cpu.pressure", "some avg10=0 avg60=0 avg300=0 total=44\n");
  const HostCounts in_group = read_counts(7, dir.path() + "/group", dir.path());
  EXPECT_EQ(in_group.threads.size(), 2U);
  EXPECT_EQ(in_group.throttled_us, 33U);
  EXPECT_EQ(in_group.cpu_stalled_us, 44U);
  EXPECT_EQ(in_group.io_stalled_us, 22U) << "the group has no file of its own";
  EXPECT_EQ(in_group.memory_stalled_us, 0U);
  const HostCounts without = read_counts(7, "", dir.path());
  EXPECT_EQ(without.throttled_us, 0U);
  EXPECT_EQ(without.cpu_stalled_us, 11U);
}

TEST(ProcessProbes, LooksAboutOnceASecondAndAtThisProcessReally) {
  ProcessProbes probes;
  const auto pid = static_cast<std::uint32_t>(getpid());
  EXPECT_EQ(probes.look(kProbed, pid, "", 0, {}, kThen).looked_us, 0U) << "nothing to compare with";
  EXPECT_EQ(probes.look(kProbed, pid, "", 0, {}, kThen + milliseconds(500)).looked_us, 0U);
  const wire::HostProbe probe = probes.look(kProbed, pid, "", 600'000, {pid}, kThen + seconds(1));
  EXPECT_EQ(probe.looked_us, 1'000'000U);
  EXPECT_EQ(probe.throttled_us, 600'000U) << "held back by the agent";
  EXPECT_EQ(probe.clocks_us, 1'000'000U) << "all the time since the look before";
  EXPECT_EQ(probes.look(kProbed, 0, "", 0, {}, kThen + seconds(9)).looked_us, 0U)
      << "of no process";
  probes.forget(kProbed);
  EXPECT_EQ(probes.look(kProbed, pid, "", 0, {}, kThen + seconds(9)).looked_us, 0U);
}

}  // namespace
}  // namespace antdt::antdtd
