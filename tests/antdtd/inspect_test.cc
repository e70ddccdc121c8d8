// What an agent tells `antdt doctor`, on this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "antdtd/inspect/disk_facts.h"
#include "antdtd/inspect/host_facts.h"
#include "antdtd/inspect/inspector.h"
#include "antdtd/inspect/link_probe.h"
#include "core/os/fs.h"
#include "core/os/net.h"
#include "core/wire/packet.h"

namespace antdt::antdtd {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kSecret(wire::kPortSecretBytes, 's');
constexpr std::uint64_t kMega = 1ULL << 20;

std::vector<std::string> entries(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path());
  return names;
}

LinkListener listening(const std::string& secret = kSecret) {
  auto opened = LinkListener::open({"127.0.0.1", "", secret});
  EXPECT_TRUE(opened) << opened.error().message;
  return std::move(*opened);
}

wire::FileLink link_to(const LinkListener& listener, const std::string& secret = kSecret) {
  return {with_port("127.0.0.1", listener.port()), secret, 200, kMega};
}

TEST(LinkProbe, MeasuresALinkWithNoMoreBytesThanWereAllowed) {
  const LinkListener listener = listening();
  const auto told = measure_link(link_to(listener));
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(told->bytes, kMega);
  EXPECT_GT(told->round_trip_us, 0U);
  EXPECT_GT(told->took_us, 0U);
}

TEST(LinkProbe, AStrangerLearnsNothingAndCostsNothing) {
  const LinkListener listener = listening();
  const auto stranger = measure_link(link_to(listener, std::string(kSecret.size(), 'x')));
  ASSERT_FALSE(stranger);
  EXPECT_THAT(stranger.error().message, HasSubstr("before the other end proved itself"));
  EXPECT_TRUE(measure_link(link_to(listener)));
}

TEST(LinkProbe, NothingIsSentToAnotherListenerAtTheSamePort) {
  const std::string half(wire::kPortSecretBytes / 2, 's');
  const LinkListener other = listening(half + std::string(half.size(), 'x'));
  const auto told = measure_link(link_to(other));
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().kind, ErrorKind::kRefused);
}

TEST(LinkProbe, APortIsOpenForOneMeasurementOnly) {
  const LinkListener listener = listening();
  ASSERT_TRUE(measure_link(link_to(listener)));
  EXPECT_FALSE(measure_link(link_to(listener)));
  wire::FileLink to_closed;
  {
    const LinkListener unused = listening();
    to_closed = link_to(unused);
  }
  const auto told = measure_link(to_closed);
  ASSERT_FALSE(told);
  EXPECT_THAT(told.error().message, HasSubstr("Connection refused"));
}

TEST(LinkProbe, OnlyPortsOfTheRangeAreTaken) {
  const LinkListener first = listening();
  const auto only = std::to_string(first.port()) + "-" + std::to_string(first.port());
  const auto taken = LinkListener::open({"127.0.0.1", only, kSecret});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().kind, ErrorKind::kIo);
}

TEST(LinkProbe, ABadOrderIsRefused) {
  const LinkListener listener = listening();
  wire::FileLink longer = link_to(listener);
  longer.send_ms = wire::kMostLinkMs + 1;
  EXPECT_EQ(measure_link(longer).error().kind, ErrorKind::kUsage);
  wire::FileLink larger = link_to(listener);
  larger.most_bytes = wire::kMostLinkBytes + 1;
  EXPECT_EQ(measure_link(larger).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(measure_link(link_to(listener, "short")).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(LinkListener::open({"127.0.0.1", "", ""}).error().kind, ErrorKind::kUsage);
  EXPECT_FALSE(LinkListener::open({"192.0.2.1", "", kSecret}));  // no address of this host
}

TEST(DiskFactsTest, MeasuresADiskAndLeavesNothing) {
  const TempDir dir;
  {
    DiskFacts disks;
    const auto told = disks.look(dir.path(), {".antdt-doctor-1", true});
    ASSERT_TRUE(told) << told.error().message;
    EXPECT_EQ(told->error, "");
    EXPECT_EQ(told->directory, dir.path());
    EXPECT_GT(told->free_bytes, 0U);
    EXPECT_GT(told->sync_us, 0U);
    EXPECT_GE(told->worst_sync_us, told->sync_us);
    EXPECT_GT(told->bytes_per_second, 0U);
    EXPECT_THAT(entries(dir.path()),
                testing::SizeIs(1));  // the probe, until all hosts have answered
  }
  EXPECT_THAT(entries(dir.path()), IsEmpty());
}

TEST(DiskFactsTest, LooksWhereAMissingDirectoryWouldBeMade) {
  const TempDir dir;
  DiskFacts disks;
  const auto told = disks.look(dir / "a/b/c", {"", false});
  ASSERT_TRUE(told);
  EXPECT_EQ(told->directory, dir.path());
  EXPECT_EQ(told->sync_us, 0U);
  EXPECT_THAT(entries(dir.path()), IsEmpty());
}

TEST(DiskFactsTest, HostsThatShareADirectorySeeTheSameIdentity) {
  const TempDir shared;
  const TempDir own;
  DiskFacts one;
  DiskFacts other;
  const std::string probe = ".antdt-doctor-1";
  const auto first = one.look(shared.path(), {probe, false});
  const auto second = other.look(shared.path(), {probe, false});
  const auto third = other.look(own.path(), {probe, false});
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(first->identity, second->identity);
  EXPECT_NE(first->identity, third->identity);
}

TEST(DiskFactsTest, ADirectoryThatCannotBeWrittenIsPartOfTheAnswer) {
  DiskFacts disks;
  const auto told = disks.look("/proc", {"", true});
  ASSERT_TRUE(told);
  EXPECT_THAT(told->error, HasSubstr("/proc"));
}

TEST(DiskFactsTest, NamesOfOtherFilesAreRefused) {
  const TempDir dir;
  DiskFacts disks;
  const std::string with_nul = std::string(".antdt-doctor-") + '\0';
  for (const std::string& probe :
       {std::string("model.pt"), std::string(".antdt-doctor-/../x"), std::string("../x"), with_nul,
        ".antdt-doctor-" + std::string(300, 'x')}) {
    EXPECT_EQ(disks.look(dir.path(), {probe, false}).error().kind, ErrorKind::kUsage) << probe;
  }
  EXPECT_EQ(disks.look("relative", {"", false}).error().kind, ErrorKind::kUsage);
  EXPECT_THAT(entries(dir.path()), IsEmpty());
}

class HostFactsTest : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root / path).parent_path());
    ASSERT_TRUE(write_file_atomic(root / path, text, 0600));
  }
  wire::FileHostTold facts() { return *host_facts({}, root.path()); }
  TempDir root;
};

TEST_F(HostFactsTest, ReadsWhatTheKernelAndTheDriverSay) {
  put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  put("proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  535.104.05  Release Build\n");
  put("proc/self/cgroup", "0::/system.slice/antdtd.service/antdt-agent\n");
  put("usr/lib64/libnccl.so.2", "");
  put("usr/lib/python3/dist-packages/nvidia/cuda_runtime/lib/libcudart.so.12", "");
  put("usr/lib/python3/dist-packages/nvidia_cuda_runtime_cu12-12.9.79.dist-info/METADATA", "");
  for (const char* name : {"dev/nvidia0", "dev/nvidia1", "dev/nvidiactl", "dev/nvidia-uvm"}) {
    put(name, "");
  }
  put("dev/shm/x", "");
  put("sys/class/infiniband/mlx5_0", "");
  const wire::FileHostTold told = facts();
  EXPECT_EQ(told.huge_pages, "never");
  EXPECT_EQ(told.driver, "535.104.05");
  EXPECT_EQ(told.nccl, "/usr/lib64/libnccl.so.2");
  EXPECT_EQ(told.nccl_version, "");
  EXPECT_EQ(told.cudart, "/usr/lib/python3/dist-packages/nvidia/cuda_runtime/lib/libcudart.so.12");
  EXPECT_EQ(told.cudart_version, "12.9.79");
  EXPECT_EQ(told.devices, 2U);
  EXPECT_EQ(told.cgroup, "/system.slice/antdtd.service");
  EXPECT_TRUE(told.infiniband);
  EXPECT_GT(told.shm_bytes, 0U);
  EXPECT_GT(told.open_files, 0U);
  EXPECT_GE(told.open_files_hard, told.open_files);
  EXPECT_FALSE(told.software.empty());
}

TEST_F(HostFactsTest, WhatIsMissingIsEmpty) {
  const wire::FileHostTold told = facts();
  EXPECT_EQ(told.huge_pages, "");
  EXPECT_EQ(told.driver, "");
  EXPECT_EQ(told.nccl, "");
  EXPECT_EQ(told.cudart, "");
  EXPECT_EQ(told.devices, 0U);
  EXPECT_EQ(told.shm_bytes, 0U);
  EXPECT_FALSE(told.infiniband);
}

TEST_F(HostFactsTest, SaysWhyAFileCannotBeRead) {
  put("data.tsv", "four");
  const auto told = host_facts({{root / "data.tsv", root / "missing", "relative"}});
  ASSERT_TRUE(told);
  ASSERT_EQ(told->files.size(), 3U);
  EXPECT_EQ(told->files[0].error, "");
  EXPECT_EQ(told->files[0].bytes, 4U);
  EXPECT_THAT(told->files[1].error, HasSubstr("No such file"));
  EXPECT_THAT(told->files[2].error, HasSubstr("not absolute"));
  EXPECT_FALSE(host_facts({std::vector<std::string>(wire::kMostFilesAsked + 1, "/x")}));
}

wire::Packet asked_of(Inspector& inspector, const wire::Packet& request) {
  const auto envelope = wire::open_envelope(request);
  EXPECT_TRUE(envelope && Inspector::is_for(envelope->kind));
  return inspector.answer(*envelope, request);
}

TEST(InspectorTest, AnswersThePeerThatAsked) {
  const TempDir dir;
  Inspector inspector(dir.path());
  wire::Envelope envelope;
  envelope.job = "j";
  envelope.seq = 7;
  wire::Packet request = wire::make_packet(envelope, wire::FileDisk{"", false});
  request.peer = "peer";
  const wire::Packet answer = asked_of(inspector, request);
  EXPECT_EQ(answer.peer, "peer");
  EXPECT_EQ(wire::open_envelope(answer)->seq, 7U);
  const auto told = wire::open_reply<wire::FileDiskTold>(answer);
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(told->directory, dir.path());
}

TEST(InspectorTest, RefusesWhatItCannotRead) {
  Inspector inspector("/tmp");
  for (const std::string kind : {"file-host", "file-disk", "file-port", "file-link"}) {
    wire::Packet request = wire::make_packet(wire::FileClock{});
    wire::Envelope envelope;
    envelope.kind = kind;
    request.envelope = wire::encode(envelope);
    request.body = "\xc1 this is no message";
    EXPECT_FALSE(wire::open_reply<wire::FileClockTold>(asked_of(inspector, request))) << kind;
  }
  EXPECT_FALSE(Inspector::is_for("file-read"));
  EXPECT_FALSE(Inspector::is_for("file-hostile"));
}

TEST(InspectorTest, APortThatWasOpenedCanBeMeasured) {
  Inspector inspector("/tmp");
  const auto opened = wire::open_reply<wire::FilePortOpen>(
      asked_of(inspector, wire::make_packet(wire::FilePort{"127.0.0.1", "", kSecret})));
  ASSERT_TRUE(opened) << opened.error().message;
  const auto told = measure_link(
      {with_port("127.0.0.1", static_cast<std::uint16_t>(opened->port)), kSecret, 50, kMega});
  EXPECT_TRUE(told) << told.error().message;
}

}  // namespace
}  // namespace antdt::antdtd
