#include "launcher/doctor/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/launcher/doctor/healthy.h"

namespace antdt::launcher {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t kMegabyte = 1ULL << 20;

Findings not_well(const Facts& facts) {
  Findings findings = judge(facts);
  std::erase_if(findings, [](const Finding& f) { return f.level == Level::kOk; });
  return findings;
}

// Spoils one fact of a healthy cluster, and what is said then.
struct Spoilt {
  const char* name;
  std::function<void(Facts&)> spoil;
  Level level;
  const char* check;
  const char* subject;
  const char* found;
  const char* advice;
};

class Judge : public testing::TestWithParam<Spoilt> {};

TEST_P(Judge, NamesOneBadFactAndOnlyThat) {
  const Spoilt& spoilt = GetParam();
  Facts facts = healthy();
  spoilt.spoil(facts);
  const Findings findings = not_well(facts);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].level, spoilt.level);
  EXPECT_EQ(findings[0].check, spoilt.check);
  EXPECT_THAT(findings[0].subject, HasSubstr(spoilt.subject));
  EXPECT_THAT(findings[0].found, HasSubstr(spoilt.found));
  EXPECT_THAT(findings[0].advice, HasSubstr(spoilt.advice));
  EXPECT_FALSE(findings[0].why.empty());
}

const Spoilt kSpoilt[] = {
    {"JobFile", [](Facts& f) { f.job_error = "line 3: no such key"; }, Level::kError, "job",
     "this host", "line 3", "correct"},
    // keys
    {"KeyThatOthersRead", [](Facts& f) { f.keys[0].mode = 0644; }, Level::kError, "keys",
     "this host", "0644", "chmod 600 /k/job.key"},
    {"KeyThatIsMissing", [](Facts& f) { f.keys[0].missing = true; }, Level::kError, "keys",
     "this host", "no such file", "antdt keygen"},
    {"AgentKeyThatIsMissing", [](Facts& f) { f.keys[1].missing = true; }, Level::kError, "keys",
     "this host", "no such file", "name the host as in antdt keygen --agent NAME"},
    {"AgentKeyThatOthersChange", [](Facts& f) { f.keys[1].mode = 0666; }, Level::kWarning, "keys",
     "this host", "others may change it", "go-w"},
    {"KeyOfAnother", [](Facts& f) { f.keys[1].other_owner = true; }, Level::kWarning, "keys",
     "this host", "another user", "chown"},
    {"KeyThatCannotBeRead", [](Facts& f) { f.keys[0].error = "Permission denied"; }, Level::kError,
     "keys", "this host", "Permission denied", "readable"},
    // the store
    {"StoreMemberThatIsLost", [](Facts& f) { f.store[1].error = "no answer"; }, Level::kWarning,
     "store", "this host", "no answer", "--endpoints=10.0.0.2:2379 endpoint health"},
    {"SlowStoreMember", [](Facts& f) { f.store[0].answer_us = 35'000; }, Level::kWarning, "store",
     "this host", "35.0 ms", "a disk of its own"},
    {"StoreOfOne", [](Facts& f) { f.store.resize(1); }, Level::kNote, "store", "this host", "1",
     "three members"},
    {"StoreOfTwo", [](Facts& f) { f.store.resize(2); }, Level::kNote, "store", "this host", "2",
     "three members"},
    // reach
    {"SlowName", [](Facts& f) { f.hosts[1].reach.resolve_us = 5'000'000; }, Level::kWarning, "name",
     "10.0.0.1:7700", "after 5.0 s", "/etc/resolv.conf"},
    {"AnotherUser", [](Facts& f) { f.hosts[2].welcome->user = "bob"; }, Level::kError, "user",
     "hostb", "'bob', and you are 'ada'", "ada.pub"},
    {"LoopbackAddress", [](Facts& f) { f.hosts[2].welcome->address = "127.0.0.1"; }, Level::kError,
     "address", "hostb", "127.0.0.1", "--interface"},
    // the host
    {"NoSharedMemory", [](Facts& f) { f.hosts[1].told->shm_bytes = f.hosts[1].told->shm_free = 0; },
     Level::kError, "shared memory", "hosta", "there is none", "--shm-size"},
    {"SmallSharedMemory",
     [](Facts& f) { f.hosts[1].told->shm_bytes = f.hosts[1].told->shm_free = 64 * kMegabyte; },
     Level::kWarning, "shared memory", "hosta", "64.0 MiB", "--shm-size"},
    {"FullSharedMemory", [](Facts& f) { f.hosts[1].told->shm_free = 0; }, Level::kError,
     "shared memory", "hosta", "0.0 MiB of 8.0 GiB", "ls -l /dev/shm"},
    {"FewOpenFiles", [](Facts& f) { f.hosts[3].told->open_files = 100; }, Level::kError,
     "open files", "hostc", "100", "LimitNOFILE"},
    {"RatherFewOpenFiles", [](Facts& f) { f.hosts[3].told->open_files = 512; }, Level::kWarning,
     "open files", "hostc", "512", "LimitNOFILE"},
    {"LockedMemoryWithInfiniBand",
     [](Facts& f) {
       f.hosts[1].told->infiniband = true;
       f.hosts[1].told->memlock_bytes = 8 * kMegabyte;
     },
     Level::kError, "locked memory", "hosta", "8.0 MiB", "LimitMEMLOCK"},
    {"NoHugePages", [](Facts& f) { f.hosts[1].told->huge_pages = "never"; }, Level::kNote,
     "huge pages", "hosta", "never", "madvise"},
    {"NoCgroup",
     [](Facts& f) {
       f.hosts[1].told->cgroup = "";
       f.hosts[1].told->cgroup_error = "not delegated";
     },
     Level::kNote, "cgroup", "hosta", "not delegated", "Delegate=yes"},
    {"NoClockService", [](Facts& f) { f.hosts[1].told->clock_synchronized = false; }, Level::kNote,
     "clock service", "hosta", "it is not", "chronyd"},
    {"DevicesWithoutDriver", [](Facts& f) { f.hosts[1].told->devices = 8; }, Level::kWarning,
     "accelerators", "hosta", "8 devices, driver not found", "nvidia-smi"},
    // The agent itself keeps a GPU open, so the driver would refuse to reset it.
    {"DeviceThatIsNotHealthy",
     [](Facts& f) {
       report::HostDevice device;
       device.name = "GPU 0";
       device.problem = "rows of its memory wait to be remapped";
       f.hosts[1].devices.emplace().list = {device};
     },
     Level::kWarning, "GPUs", "hosta", "wait to be remapped", "systemctl stop antdtd"},
    {"DevicesThatNobodyKnows",
     [](Facts& f) { f.hosts[1].devices.emplace().trouble = "NVML does not begin"; },
     Level::kWarning, "GPUs", "hosta", "does not begin", "nvidia-smi says"},
    {"DevicesWithoutNccl",
     [](Facts& f) {
       f.hosts[1].told->devices = 8;
       f.hosts[1].told->driver = "535.104.05";
       f.hosts[1].told->cudart = "/usr/lib/libcudart.so.12";
     },
     Level::kNote, "accelerators", "hosta", "NCCL not found",
     "the packages nvidia-nccl-cu12 and nvidia-cuda-runtime-cu12,"},
    {"DevicesOfCuda13WithoutNccl",
     [](Facts& f) {
       f.hosts[1].told->devices = 8;
       f.hosts[1].told->driver = "580.65.06";
       f.hosts[1].told->cudart = "/v/lib/python3/site-packages/nvidia/cu13/lib/libcudart.so.13";
     },
     Level::kNote, "accelerators", "hosta", "NCCL not found",
     "the packages nvidia-nccl-cu13 and nvidia-cuda-runtime,"},
    {"DevicesWithoutTheCudaRuntime",
     [](Facts& f) {
       f.hosts[1].told->devices = 8;
       f.hosts[1].told->driver = "580.65.06";
     },
     Level::kNote, "accelerators", "hosta", "CUDA runtime not found",
     "nvidia-nccl-cu13 for CUDA 13"},
    {"NcclThatIsNotKnownToWork",
     [](Facts& f) {
       f.hosts[1].told->devices = 8;
       f.hosts[1].told->driver = "535.104.05";
       f.hosts[1].told->cudart = "/usr/lib/libcudart.so.12";
       f.hosts[1].told->nccl = "/usr/lib/libnccl.so.2";
       f.hosts[1].told->nccl_version = "2.18.5";
     },
     Level::kNote, "accelerators", "hosta", "(2.18.5)", "ANTDT_NCCL_LIBRARY"},
    {"ReplacedAgent", [](Facts& f) { f.hosts[1].told->agent_replaced = true; }, Level::kNote,
     "programs", "hosta", "replaced", "restart antdtd"},
    {"MissingFile",
     [](Facts& f) {
       f.hosts[2].told->files = {{"/data/a.tsv", 0, "No such file or directory"}};
     },
     Level::kError, "files", "hostb", "No such file", "under the same path"},
    // disks
    {"DirectoryThatCannotBeWritten",
     [](Facts& f) { f.hosts[1].directories[0].told.error = "writing in /x: Permission denied"; },
     Level::kError, "disk", "hosta", "Permission denied", "--run-dir"},
    {"DiskThatStands",
     [](Facts& f) { f.hosts[1].directories[0].not_told = "does its disk stand still?"; },
     Level::kError, "disk", "hosta", "stand still", "--run-dir"},
    {"FullDisk", [](Facts& f) { f.hosts[1].directories[0].told.free_bytes = kMegabyte; },
     Level::kError, "disk", "hosta", "1.0 MiB free", "make room"},
    {"DiskThatIsSoFullThatNothingCanBeWritten",
     [](Facts& f) {
       f.hosts[1].directories[0].told.error = "writing: No space left on device";
       f.hosts[1].directories[0].told.free_bytes = 0;
     },
     Level::kError, "disk", "hosta", "No space left on device; 0.0 MiB free", "make room"},
    {"DirectoryWhoseQuotaIsUsedUp",
     [](Facts& f) { f.hosts[1].directories[0].told.error = "writing: Disk quota exceeded"; },
     Level::kError, "disk", "hosta", "quota exceeded", "make room"},
    {"ReadOnlyImage",
     [](Facts& f) {
       f.hosts[1].directories[0].told.error = "making /x: Read-only file system";
       f.hosts[1].directories[0].told.free_bytes = 0;
     },
     Level::kError, "disk", "hosta", "Read-only", "in which your user may write"},
    {"RatherFullDisk",
     [](Facts& f) { f.hosts[1].directories[0].told.free_bytes = 512 * kMegabyte; }, Level::kWarning,
     "disk", "hosta", "512.0 MiB free", "make room"},
    {"SlowSync", [](Facts& f) { f.hosts[0].directories[0].told.sync_us = 80'000; }, Level::kWarning,
     "disk", "this host", "80.0 ms", "--state-dir"},
    {"SlowDisk", [](Facts& f) { f.hosts[1].directories[0].told.bytes_per_second = 5'000'000; },
     Level::kWarning, "disk", "hosta", "5 MB/s", "faster disk"},
    {"JournalOnANetworkFilesystem",
     [](Facts& f) { f.hosts[0].directories[0].told.filesystem = "nfs"; }, Level::kWarning, "disk",
     "this host", "on nfs", "--state-dir"},
    // several hosts
    {"ClocksApart", [](Facts& f) { f.hosts[2].clock->ahead_us = -7'000'000; }, Level::kWarning,
     "clock", "hostb", "7.000 s behind", "chronyd"},
    {"VersionsApart", [](Facts& f) { f.hosts[3].told->software = "1.1.0"; }, Level::kWarning,
     "version", "all hosts", "1.1.0 on hostc at 10.0.0.3:7700; 1.2.3 on this host",
     "same release everywhere"},
    {"OneCopyOnUnsharedDisks", [](Facts& f) { f.copies = 1; }, Level::kWarning, "shared directory",
     "all hosts", "each host has its own", "checkpoint.copies = 2"},
    // links
    {"BlockedPort",
     [](Facts& f) { link_of(f, 1, 2).connect_error = "connecting to 10.0.0.2:29400: timed out"; },
     Level::kError, "link", "hosta at 10.0.0.1:7700 -> hostb at 10.0.0.2:7700", "timed out",
     "let tcp ports 29400-29999 through"},
    {"HostThatCannotListen",
     [](Facts& f) {
       link_of(f, 1, 3).listen_error = link_of(f, 2, 3).listen_error = "no port is free";
     },
     Level::kError, "link", "all hosts -> hostc", "no port is free", "cluster.ports"},
    {"SlowLink", [](Facts& f) { link_of(f, 2, 1).told.bytes = 5'000'000; }, Level::kWarning, "link",
     "hostb at 10.0.0.2:7700 -> hosta", "100.0 Mbit/s, where the better links have 9.0 Gbit/s",
     "ethtool"},
    {"HostThatSendsSlowly",
     [](Facts& f) { link_of(f, 2, 1).told.bytes = link_of(f, 2, 3).told.bytes = 5'000'000; },
     Level::kWarning, "link", "hostb at 10.0.0.2:7700 -> all hosts", "100.0 Mbit/s", "ethtool"},
    {"LongWay", [](Facts& f) { link_of(f, 1, 3).told.round_trip_us = 40'000; }, Level::kWarning,
     "link", "hosta at 10.0.0.1:7700 -> hostc", "40.00 ms, where the better links have 0.20 ms",
     "ip route get"},
};

INSTANTIATE_TEST_SUITE_P(EachFact, Judge, testing::ValuesIn(kSpoilt),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(JudgeAll, AHealthyClusterIsWell) {
  EXPECT_THAT(not_well(healthy()), IsEmpty());
  EXPECT_GT(judge(healthy()).size(), 30U);
}

TEST(JudgeAll, DevicesWithAnNcclThatIsKnownToWorkAreWell) {
  Facts facts = healthy();
  wire::FileHostTold& told = *facts.hosts[1].told;
  told.devices = 8;
  told.driver = "535.104.05";
  told.nccl = "/usr/lib/libnccl.so.2";
  told.cudart = "/usr/lib/libcudart.so.12";
  for (const char* version : {"2.27.5", ""}) {  // a file need not say its version
    told.nccl_version = version;
    EXPECT_THAT(not_well(facts), IsEmpty());
  }
}

// A host that was not asked what follows is not judged by it.
HostFacts& unreached(Facts& facts) {
  HostFacts& host = facts.hosts[2];
  host.welcome.reset();
  host.told.reset();
  host.clock.reset();
  host.directories.clear();
  std::erase_if(facts.links, [](const LinkFacts& l) { return l.from == 2 || l.to == 2; });
  return host;
}

TEST(JudgeReach, ANameWithoutAnAddressIsOneError) {
  Facts facts = healthy();
  unreached(facts).reach.resolve_error = "Name or service not known";
  const Findings findings = not_well(facts);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].level, Level::kError);
  EXPECT_EQ(findings[0].check, "name");
  EXPECT_THAT(findings[0].advice, HasSubstr("/etc/hosts"));
}

TEST(JudgeReach, AHostWithoutAnAgentIsOneError) {
  Facts facts = healthy();
  unreached(facts).reach.connect_error = "connecting to 10.0.0.2:7700: Connection refused";
  const Findings findings = not_well(facts);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].subject, "10.0.0.2:7700");
  EXPECT_THAT(findings[0].found, HasSubstr("Connection refused"));
  EXPECT_THAT(findings[0].advice, HasSubstr("systemctl status antdtd"));
}

TEST(JudgeReach, AnAgentThatDoesNotKnowOurKeyIsOneError) {
  Facts facts = healthy();
  unreached(facts).reach.silent = true;
  const Findings findings = not_well(facts);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_THAT(findings[0].advice, HasSubstr("authorized/"));
}

TEST(JudgeReach, AnAgentOfAnEarlierReleaseIsAWarning) {
  Facts facts = healthy();
  facts.hosts[2].told.reset();
  facts.hosts[2].reach.not_told = "no file service knows 'file-host'";
  const Findings findings = not_well(facts);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].level, Level::kWarning);
  EXPECT_THAT(findings[0].advice, HasSubstr("restart antdtd"));
}

// There is no better link to compare them with.
TEST(JudgeLinks, LinksThatAreAllSlowAreOneWarning) {
  Facts facts = healthy();
  for (LinkFacts& link : facts.links) link.told.bytes = 500'000;
  link_of(facts, 1, 2).told.bytes = 250'000;
  const Findings findings = not_well(facts);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].level, Level::kWarning);
  EXPECT_EQ(findings[0].subject, "all hosts");
  EXPECT_THAT(findings[0].found, HasSubstr("5.0 Mbit/s"));
}

TEST(JudgeLinks, WithoutConfiguredPortsTheAdviceIsToConfigureThem) {
  Facts facts = healthy();
  facts.ports = "";
  link_of(facts, 1, 2).connect_error = "timed out";
  const Findings findings = not_well(facts);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_THAT(findings[0].advice, HasSubstr("set cluster.ports"));
}

TEST(JudgeTogether, SaysWhichHostsShareADirectory) {
  Facts facts = healthy();
  facts.hosts[1].directories[0].told.identity = "own";
  const auto shared_by = [&] {
    for (const Finding& finding : judge(facts)) {
      if (finding.check == "shared directory") return finding.found;
    }
    return std::string();
  };
  EXPECT_THAT(shared_by(), HasSubstr("this host, hosta at 10.0.0.1:7700 share one"));
  EXPECT_THAT(shared_by(), HasSubstr("hostc at 10.0.0.3:7700 has its own"));
  for (HostFacts& host : facts.hosts) host.directories[0].told.identity = "own";
  EXPECT_EQ(shared_by(), "all hosts share it");
}

TEST(JudgeStore, WithoutAnyMemberAJobCannotBegin) {
  Facts facts = healthy();
  for (StoreFacts& member : facts.store) member.error = "connection refused";
  const Findings findings = not_well(facts);
  ASSERT_THAT(findings, SizeIs(3));
  for (const Finding& finding : findings) EXPECT_EQ(finding.level, Level::kError);
}

}  // namespace
}  // namespace antdt::launcher
