// Which devices a process sees.
#include "antdtd/devices/visible_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/antdtd/devices/leased_host.h"

namespace antdt::antdtd {
namespace {

using leases::LeaseWanted;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(EnvironmentWithDevices, AProcessAloneSeesItsOwnDevicesFromZero) {
  Host host({gpu(0), gpu(1), gpu(2)});
  host.take(want(worker("a", 0)));
  host.take(want(worker("a", 1), 2));
  const auto env = environment(host.last());
  EXPECT_EQ(value(env, "CUDA_VISIBLE_DEVICES"), "GPU-b,GPU-c");
  EXPECT_EQ(value(env, "CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
  EXPECT_EQ(value(env, "LOCAL_RANK"), "0");
  EXPECT_EQ(value(env, "LOCAL_WORLD_SIZE"), "1");
}

TEST(EnvironmentWithDevices, RanksWithSeveralDevicesEachSeeOnlyTheirOwn) {
  Host host({gpu(0), gpu(1), gpu(2), gpu(3)});
  LeaseWanted wanted = rank(worker("a", 1), 1, 2);
  wanted.each = 2;
  EXPECT_THAT(host.take(wanted), ElementsAre("GPU-c", "GPU-d"));
  const auto env = environment(host.last(), {{"LOCAL_RANK", "1"}});
  EXPECT_EQ(value(env, "CUDA_VISIBLE_DEVICES"), "GPU-c,GPU-d");
  EXPECT_EQ(value(env, "LOCAL_RANK"), "0");
}

TEST(EnvironmentWithDevices, RanksThatShareADeviceSeeOnlyTheirOwn) {
  Host host({gpu(0)});
  LeaseWanted wanted = rank(worker("a", 1), 1, 2);
  wanted.shared = true;
  EXPECT_THAT(host.take(wanted), ElementsAre("GPU-a"));
  const auto env = environment(host.last(), {{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}});
  EXPECT_EQ(value(env, "CUDA_VISIBLE_DEVICES"), "GPU-a");
  EXPECT_EQ(value(env, "LOCAL_RANK"), "0");
}

TEST(EnvironmentWithDevices, HiddenDevicesAreThoseOfAJobThatSetsNothingElse) {
  EXPECT_EQ(value(environment({}), "CUDA_VISIBLE_DEVICES"), "");
  EXPECT_EQ(value(environment({}, {{"CUDA_VISIBLE_DEVICES", "0"}}), "CUDA_VISIBLE_DEVICES"), "0");
  EXPECT_EQ(value(environment({}), "LOCAL_RANK"), "(unset)");
  EXPECT_THAT(environment_with_devices(wire::StartProcess{}), IsEmpty());
}

TEST(VisibleDevices, AreThoseThatTheAgentsOwnEnvironmentNames) {
  const std::vector<wire::HostDevice> all = {gpu(0), gpu(1), gpu(2), instance(3, 0)};
  const auto names = [&](const char* text) {
    std::string uuids;
    for (const auto& device : visible_devices(all, text)) uuids += device.uuid + " ";
    return uuids;
  };
  EXPECT_EQ(visible_devices(all, nullptr).size(), 4U);
  EXPECT_EQ(names(""), "");
  EXPECT_EQ(names("2,0"), "GPU-c GPU-a ");
  EXPECT_EQ(names("GPU-b,MIG-30"), "GPU-b MIG-30 ");
  EXPECT_EQ(names("1,9,0"), "GPU-b ") << "as for CUDA, what follows a wrong name does not count";
  EXPECT_EQ(names("G"), "");
}

TEST(VisibleDevices, AnIndexThatCudaMayCountDifferentlyIsDoubted) {
  std::vector<wire::HostDevice> all = {gpu(0), gpu(1)};
  all[0].name = "Quadro P400";
  all[1].name = "A100";
  EXPECT_THAT(doubt_about_visible(all, "0", nullptr),
              AllOf(HasSubstr("jobs get GPU-a (Quadro P400)"),
                    HasSubstr("set CUDA_DEVICE_ORDER=PCI_BUS_ID")));
  EXPECT_THAT(doubt_about_visible(all, "1,0", "FASTEST_FIRST"),
              HasSubstr("GPU-b (A100), GPU-a (Quadro P400)"));
  EXPECT_EQ(doubt_about_visible(all, "0", "PCI_BUS_ID"), "");
  EXPECT_EQ(doubt_about_visible(all, "GPU-a", nullptr), "");
  EXPECT_EQ(doubt_about_visible(all, "", nullptr), "");
  EXPECT_EQ(doubt_about_visible(all, "7", nullptr), "") << "it names none";
  EXPECT_EQ(doubt_about_visible(all, nullptr, nullptr), "");
  all[0].name = "A100";
  EXPECT_EQ(doubt_about_visible(all, "0", nullptr), "") << "models are the same";
}

}  // namespace
}  // namespace antdt::antdtd
