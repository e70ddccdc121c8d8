#include "sim/hosts/process.h"

#include <gtest/gtest.h>

#include "sim/hosts/disk.h"

namespace antdt::sim {
namespace {

using std::chrono::seconds;

void run_for(World& world, Duration time) {
  bool over = false;
  world.after(time, [&] { over = true; });
  while (!over && world.run_one()) {
  }
}

TEST(ProcessTest, TimersOfASuspendedProcessWait) {
  World world(1, false);
  Process process(world);
  std::string order;
  process.after(seconds(1), [&] { order += 'a'; });
  process.after(seconds(2), [&] { order += 'b'; });
  process.freeze();
  process.freeze();  // with its machine
  run_for(world, seconds(5));
  process.thaw();
  run_for(world, seconds(5));
  EXPECT_EQ(order, "");
  process.thaw();
  run_for(world, seconds(5));
  EXPECT_EQ(order, "ab");
}

TEST(ProcessTest, AProcessThatEndsWhileSuspendedDoesNothingMore) {
  World world(1, false);
  Process process(world);
  int happened = 0;
  process.after(seconds(1), [&] { ++happened; });
  process.freeze();
  run_for(world, seconds(2));
  process.end();
  process.thaw();
  run_for(world, seconds(2));
  EXPECT_EQ(happened, 0);
}

TEST(HostClockTest, GoesAtItsOwnPaceAndStandsStillWithItsMachine) {
  World world(1, false);
  HostClock clock(world, MonoTime(seconds(7)), 2.0);
  run_for(world, seconds(3));
  EXPECT_EQ(clock.now(), MonoTime(seconds(13)));
  clock.stand_still();
  run_for(world, seconds(100));
  EXPECT_EQ(clock.now(), MonoTime(seconds(13)));
  clock.go_on();
  run_for(world, seconds(1));
  EXPECT_EQ(clock.now(), MonoTime(seconds(15)));
  EXPECT_GE(clock.real(seconds(4)), Duration(seconds(2)));
  clock.restart(MonoTime(seconds(1)));
  EXPECT_EQ(clock.now(), MonoTime(seconds(1)));
}

TEST(DiskTest, AProcessThatWasReplacedWritesNothing) {
  Rng rng(1);
  Disk disk(rng, true);
  const auto first = disk.open();
  ASSERT_TRUE(first);
  EXPECT_EQ(disk.append(*first, {{"kind", "a"}}), Disk::Wrote::kDone);
  const auto second = disk.open();
  EXPECT_EQ(disk.append(*first, {{"kind", "b"}}), Disk::Wrote::kTakenOver);
  EXPECT_EQ(disk.snapshot(*first, {}), Disk::Wrote::kTakenOver);
  EXPECT_EQ(disk.append(*second, {{"kind", "c"}}), Disk::Wrote::kDone);
  EXPECT_EQ(disk.journal().records.size(), 2U);
}

TEST(DiskTest, AFullDiskTakesWhatTheBallastHadRoomForAndThenNothing) {
  Rng rng(1);
  Disk disk(rng, true);
  const auto by = disk.open();
  disk.set_full(true);
  std::size_t written = 0;
  while (disk.append(*by, {{"kind", "a"}}) == Disk::Wrote::kDone) ++written;
  EXPECT_GT(written, 0U);
  EXPECT_EQ(disk.journal().records.size(), written);
  EXPECT_FALSE(disk.open());
  EXPECT_FALSE(disk.restore_ballast());
  disk.set_full(false);
  EXPECT_TRUE(disk.restore_ballast());
  EXPECT_EQ(disk.append(*by, {{"kind", "a"}}), Disk::Wrote::kDone);
}

}  // namespace
}  // namespace antdt::sim
