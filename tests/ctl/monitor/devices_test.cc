#include "ctl/monitor/devices.h"

#include <gtest/gtest.h>

namespace antdt::ctl {
namespace {

Member worker(std::uint32_t index, std::uint32_t attempt = 1) {
  return {WorkerId{'w', index}, Attempt{attempt}};
}

TEST(Devices, AWorkerHasTheDeviceThatItSays) {
  Devices devices({});
  EXPECT_TRUE(devices.say(worker(0), {"cpu:A x1", 64}));
  EXPECT_FALSE(devices.say(worker(0), {"cpu:A x1", 64})) << "no news";
  EXPECT_EQ(devices.of(worker(0), "a"), (Device{"cpu:A x1", 64}));
  EXPECT_EQ(devices.of(worker(1), "a"), Device{}) << "who has said nothing has none";
}

TEST(Devices, TheJobFilePrecedesTheReportOfAWorker) {
  Devices devices({{{"w0"}, "", {"big", 0}}, {{}, "b", {"", 32}}, {{}, "", {"any", 16}}});
  devices.say(worker(0), {"cpu", 8});
  EXPECT_EQ(devices.of(worker(0), "a"), (Device{"big", 16}));
  EXPECT_EQ(devices.of(worker(0), "b"), (Device{"big", 32}))
      << "the first that says something of it";
  EXPECT_EQ(devices.of(worker(1), "b"), (Device{"any", 32}));
}

TEST(Devices, WithoutAnEntryTheReportOfTheWorkerCounts) {
  Devices devices({{{"w0"}, "", {"", 32}}, {{"w1"}, "b", {"big", 0}}});
  devices.say(worker(0), {"cpu", 0});
  devices.say(worker(1), {"cpu", 48});
  EXPECT_EQ(devices.of(worker(0), "a"), (Device{"cpu", 32}));
  EXPECT_EQ(devices.of(worker(1), "a"), (Device{"cpu", 48})) << "it is on another host";
  EXPECT_EQ(devices.of(worker(1), "b"), (Device{"big", 48}));
}

TEST(Devices, ALaterAttemptMayBeOnAnotherDevice) {
  Devices devices({});
  devices.say(worker(0), {"old", 64});
  EXPECT_EQ(devices.of(worker(0, 2), "a"), Device{}) << "it has not said yet";
  EXPECT_TRUE(devices.say(worker(0, 2), {"new", 0}));
  EXPECT_EQ(devices.of(worker(0, 2), "a"), (Device{"new", 0}));
  EXPECT_TRUE(devices.say(worker(0, 3), {})) << "it does not know";
  EXPECT_EQ(devices.of(worker(0, 3), "a"), Device{});
}

TEST(Devices, TheReportOfAReplacedAttemptIsIgnored) {
  Devices devices({});
  devices.say(worker(0, 2), {"new", 32});
  EXPECT_FALSE(devices.say(worker(0, 1), {"old", 64}));
  EXPECT_EQ(devices.of(worker(0, 2), "a"), (Device{"new", 32}));
}

TEST(Devices, AWorkerThatRanOutOfMemoryHasABoundUntilItIsReplaced) {
  Devices devices({});
  devices.say(worker(0), {"gpu", 0});
  EXPECT_FALSE(devices.ran_out(worker(0), 0)) << "it did not run out";
  EXPECT_TRUE(devices.ran_out(worker(0), 64));
  EXPECT_FALSE(devices.ran_out(worker(0), 64)) << "it is known";
  EXPECT_EQ(devices.of(worker(0), "a"), (Device{"gpu", 64}));
  EXPECT_TRUE(devices.ran_out(worker(0), 32));
  EXPECT_TRUE(devices.say(worker(0, 2), {"gpu", 0}));
  EXPECT_FALSE(devices.ran_out(worker(0), 16)) << "an attempt that was replaced";
  EXPECT_EQ(devices.of(worker(0, 2), "a"), (Device{"gpu", 0}));
}

TEST(Devices, AWorkerThatRanOutOfMemoryKeepsItsBoundWhenItJoinsAgain) {
  Devices devices({});
  devices.say(worker(0), {"gpu", 0});
  devices.ran_out(worker(0), 64);
  EXPECT_FALSE(devices.say(worker(0), {"gpu", 0})) << "it says so in each generation";
  EXPECT_EQ(devices.of(worker(0), "a"), (Device{"gpu", 64}));
  EXPECT_FALSE(devices.ran_out(worker(0), 64)) << "it is known";
  EXPECT_FALSE(devices.say(worker(0), {"gpu", 128}));
  EXPECT_TRUE(devices.say(worker(0), {"gpu", 32})) << "a smaller one counts";
  EXPECT_EQ(devices.of(worker(0), "a"), (Device{"gpu", 32}));
}

TEST(Devices, AnEmptyReportIsNotStored) {
  Devices devices({});
  EXPECT_FALSE(devices.say(worker(0), {}));
  EXPECT_TRUE(devices.said().empty());
}

TEST(Devices, ReportsAreKeptOverARestart) {
  Devices before({});
  before.say(worker(0), {"cpu", 64});
  Devices devices({});
  devices.restore(before.said());
  EXPECT_EQ(devices.of(worker(0), "a"), (Device{"cpu", 64}));
}

TEST(Devices, ANameIsShortAndOfCharactersThatCanBeShown) {
  Devices devices({});
  devices.say(worker(0), {"a\x1b\xff" + std::string(1000, 'b'), 0});
  const std::string name = devices.of(worker(0), "a").name;
  EXPECT_EQ(name.size(), Devices::kLongestName);
  EXPECT_TRUE(name.starts_with("a??b"));
}

}  // namespace
}  // namespace antdt::ctl
