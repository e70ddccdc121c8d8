// The agent's smaller values: environment, sums, host, files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "antdtd/host/host.h"
#include "antdtd/host/report_sums.h"
#include "antdtd/processes/environment.h"
#include "antdtd/processes/kill_rounds.h"
#include "antdtd/shim/shim_files.h"
#include "core/os/fs.h"

namespace antdt::antdtd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const ProcessKey kKey{"ctr-1", {{'w', 3}, Attempt{2}}};
const MonoTime kNow = MonoTime{} + std::chrono::hours(1);

// --------------------------------------------------------------- kill rounds

TEST(KillRounds, ATreeThatDoesNotDieIsSignalledEverMoreSeldom) {
  KillRounds rounds;
  MonoTime now = kNow;
  int signalled = 0;
  for (const MonoTime end = now + seconds(60); now < end; now += milliseconds(20)) {
    if (!rounds.due(now)) continue;
    rounds.done({7, 8}, now);
    ++signalled;
  }
  EXPECT_LE(signalled, 70) << "in a minute, of 3000 looks";
  EXPECT_GE(signalled, 60) << "each second all the same";
}

TEST(KillRounds, SomebodyNewIsSignalledAtOnceAgain) {
  KillRounds rounds;
  MonoTime now = kNow;
  for (int round = 0; round < 8; ++round) {
    now += seconds(2);
    rounds.done({7, 8}, now);
  }
  EXPECT_FALSE(rounds.due(now + milliseconds(900)));
  now += seconds(1);
  ASSERT_TRUE(rounds.due(now));
  rounds.done({8, 9}, now);
  EXPECT_TRUE(rounds.due(now + milliseconds(20)));
}

// ---------------------------------------------------------------- environment

TEST(WorkerEnvironment, DropsWhatOtherLaunchersLeft) {
  const auto env = worker_environment(
      {"RANK=5", "WORLD_SIZE=9", "LOCAL_RANK=1", "MASTER_ADDR=x", "GROUP_RANK=1", "ROLE_NAME=a",
       "TORCHELASTIC_RUN_ID=z", "PET_X=1", "SLURM_JOB_ID=1", "OMPI_COMM_WORLD_RANK=0", "PMI_RANK=0",
       "PMIX_ID=0", "ANTDT_JOB_ID=other", "PATH=/bin", "RANKING=kept"},
      "/s", kKey, {});
  for (const char* stale : {"RANK=", "WORLD_SIZE=", "LOCAL_", "MASTER_", "GROUP_", "ROLE_",
                            "TORCHELASTIC_", "PET_", "SLURM_", "OMPI_", "PMI_", "PMIX_"}) {
    EXPECT_THAT(env, Each(Not(StartsWith(stale))));
  }
  EXPECT_THAT(env, Contains("PATH=/bin"));
  EXPECT_THAT(env, Contains("RANKING=kept"));
}

TEST(WorkerEnvironment, NamesTheWorkerWhateverTheJobSets) {
  const auto env = worker_environment({}, "/run/workers.sock", kKey,
                                      {{"ANTDT_WORKER_ID", "w9"}, {"RANK", "0"}, {"LR", "0.1"}});
  EXPECT_THAT(env, Contains("ANTDT_SOCKET=/run/workers.sock"));
  EXPECT_THAT(env, Contains("ANTDT_JOB_ID=ctr-1"));
  EXPECT_THAT(env, Contains("ANTDT_WORKER_ID=w3"));
  EXPECT_THAT(env, Contains("ANTDT_ATTEMPT=2"));
  EXPECT_THAT(env, Contains("ANTDT_PROTOCOL=antdt"));
  EXPECT_THAT(env, Contains("RANK=0"));
  EXPECT_THAT(env, Contains("LR=0.1"));
}

TEST(WorkerEnvironment, OmpThreadsAreOneUnlessTheJobSetsThem) {
  EXPECT_THAT(worker_environment({}, "/s", kKey, {}), Contains("OMP_NUM_THREADS=1"));
  EXPECT_THAT(worker_environment({"OMP_NUM_THREADS=4"}, "/s", kKey, {}),
              Contains("OMP_NUM_THREADS=4"));
  EXPECT_THAT(worker_environment({}, "/s", kKey, {{"OMP_NUM_THREADS", "2"}}),
              Contains("OMP_NUM_THREADS=2"));
}

TEST(WorkerEnvironment, ComputeThreadsOfMembersSleepWhileTheyWait) {
  EXPECT_THAT(worker_environment({}, "/s", kKey, {}),
              AllOf(Contains("OMP_WAIT_POLICY=PASSIVE"), Contains("OPENBLAS_THREAD_TIMEOUT=4")));
  EXPECT_THAT(worker_environment({}, "/s", kKey, {{"OMP_WAIT_POLICY", "ACTIVE"}}),
              Contains("OMP_WAIT_POLICY=ACTIVE"));
  EXPECT_THAT(worker_environment({}, "/s", kKey, {{"ANTDT_PROTOCOL", "torchrun"}}),
              Not(Contains(HasSubstr("OMP_WAIT_POLICY"))));
}

TEST(WorkerEnvironment, TorchrunWorkersHandleNcclErrors) {
  const std::vector<wire::EnvVar> torchrun = {{"ANTDT_PROTOCOL", "torchrun"}};
  EXPECT_THAT(worker_environment({}, "/s", kKey, torchrun),
              Contains("TORCH_NCCL_ASYNC_ERROR_HANDLING=1"));
  EXPECT_THAT(worker_environment({"TORCH_NCCL_ASYNC_ERROR_HANDLING=3"}, "/s", kKey, torchrun),
              Contains("TORCH_NCCL_ASYNC_ERROR_HANDLING=3"));
  EXPECT_THAT(worker_environment({}, "/s", kKey, {}), Each(Not(StartsWith("TORCH_NCCL"))));
}

TEST(WorkerEnvironment, NamesTheAgentsLibraryAndLeavesAnotherToTheJob) {
  const auto env =
      worker_environment({"ANTDT_LIBRARY=/of/the/agent"}, "/s", kKey, {}, {"", "/usr/l.so"});
  EXPECT_THAT(env, Contains("ANTDT_AGENT_LIBRARY=/usr/l.so"));
  EXPECT_THAT(env, Each(Not(StartsWith("ANTDT_LIBRARY="))));
  EXPECT_THAT(worker_environment({}, "/s", kKey, {{"ANTDT_LIBRARY", "/mine"}}, {"", "/usr/l.so"}),
              Contains("ANTDT_LIBRARY=/mine"));
  EXPECT_THAT(worker_environment({}, "/s", kKey, {}), Each(Not(HasSubstr("LIBRARY"))));
}

TEST(WorkerEnvironment, TheLibraryIsFoundBesideTheProgramsAlsoWithoutATracer) {
  const TempDir prefix;
  ASSERT_TRUE(make_directories(prefix / "bin"));
  EXPECT_EQ(find_python_files(prefix / "bin/antdt-shim").library, "");
  ASSERT_TRUE(make_directories(prefix / "lib"));
  ASSERT_TRUE(write_file_atomic(prefix / "lib/libantdt.so.1", "", 0600));
  EXPECT_THAT(find_python_files(prefix / "bin/antdt-shim").library, HasSubstr("libantdt.so.1"));
}

TEST(WorkerEnvironment, AJobThatIsToBeMeasuredLacksATracerThatIsNotInstalled) {
  const std::vector<wire::EnvVar> traced = {{"ANTDT_TRACE", "1"}};
  EXPECT_TRUE(lacks_tracer(traced, {}));
  EXPECT_FALSE(lacks_tracer(traced, {"/usr/share/antdt/trace/site", ""}));
  EXPECT_FALSE(lacks_tracer({{"ANTDT_TRACE", "0"}}, {}));
  EXPECT_FALSE(lacks_tracer({}, {}));
}

// ----------------------------------------------------------------------- sums

wire::Report report(std::uint32_t batches, std::uint64_t total) {
  wire::Report r;
  r.batches = batches;
  r.samples = 10 * batches;
  r.compute_us = 100;
  r.samples_total = total;
  r.account.compute = static_cast<double>(total);
  r.table_sums.as_rows = total;
  return r;
}

TEST(ReportSums, CountsAddUpAndTotalsAreTheLatest) {
  ReportSums sums;
  sums.add(kKey, report(2, 100), seconds(1), kNow);
  sums.add(kKey, report(3, 130), seconds(1), kNow + milliseconds(400));
  const auto yes = [](const std::string&) { return true; };
  EXPECT_TRUE(sums.take_due(kNow + milliseconds(999), yes).empty());
  const auto due = sums.take_due(kNow + milliseconds(1000), yes);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].metrics.sum.batches, 5u);
  EXPECT_EQ(due[0].metrics.sum.samples, 50u);
  EXPECT_EQ(due[0].metrics.sum.compute_us, 200u);
  EXPECT_EQ(due[0].metrics.sum.samples_total, 130u);
  EXPECT_EQ(due[0].metrics.sum.account.compute, 130.0);
  EXPECT_EQ(due[0].metrics.sum.table_sums.as_rows, 130u);
  EXPECT_EQ(due[0].metrics.window_ms, 1000u);
  EXPECT_TRUE(sums.take_due(kNow + seconds(5), yes).empty());
}

TEST(ReportSums, WhatWasExchangedIsWhatTheLatestReportThatToldItSaid) {
  ReportSums sums;
  for (const std::uint64_t bytes : {70U, 90U}) {
    wire::Report told = report(1, 10);
    told.traffic = {.slots = bytes, .hosts = {{"a", "b", bytes, 0, 0}}};
    sums.add(kKey, told, seconds(1), kNow);
    sums.add(kKey, report(1, 20), seconds(1), kNow);  // tells nothing of it
  }
  const auto due = sums.take(kKey, kNow);
  ASSERT_TRUE(due);
  EXPECT_EQ(due->metrics.sum.traffic.slots, 90U);
}

TEST(ReportSums, TheLeastHopTimeIsKeptAndReportsWithoutHopsChangeNothing) {
  ReportSums sums;
  wire::Report with = report(1, 1);
  for (const std::uint64_t us : {400, 300, 500}) {
    with.hops = 1;
    with.hop_us = with.hop_least_us = us;
    sums.add(kKey, with, seconds(1), kNow);
    sums.add(kKey, report(1, 1), seconds(1), kNow);
  }
  const auto due = sums.take(kKey, kNow);
  ASSERT_TRUE(due);
  EXPECT_EQ(due->metrics.sum.hops, 3u);
  EXPECT_EQ(due->metrics.sum.hop_us, 1200u);
  EXPECT_EQ(due->metrics.sum.hop_least_us, 300u);
}

TEST(ReportSums, WhileTheDaemonIsAwayTheSumGoesOn) {
  ReportSums sums;
  sums.add(kKey, report(1, 1), seconds(1), kNow);
  EXPECT_TRUE(sums.take_due(kNow + seconds(2), [](const auto&) { return false; }).empty());
  EXPECT_EQ(sums.next_due([](const auto&) { return false; }), std::nullopt);
  sums.add(kKey, report(1, 2), seconds(1), kNow + seconds(2));
  const auto due = sums.take_due(kNow + seconds(3), [](const auto&) { return true; });
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].metrics.sum.batches, 2u);
  EXPECT_EQ(due[0].metrics.window_ms, 3000u);
}

// ----------------------------------------------------------------------- host

class FakeRoot {
 public:
  FakeRoot() { write("/proc/meminfo", "MemTotal:       8388608 kB\nMemFree: 1 kB\n"); }
  void write(const std::string& path, const std::string& text) {
    const std::string full = dir_.path() + path;
    ASSERT_TRUE(make_directories(full.substr(0, full.find_last_of('/'))));
    ASSERT_TRUE(write_file_atomic(full, text));
  }
  [[nodiscard]] Capacity probe() const { return probe_capacity(dir_.path()); }

 private:
  TempDir dir_;
};

TEST(ProbeCapacity, TakesTheMachinesMemoryWithoutACgroupLimit) {
  EXPECT_EQ(FakeRoot().probe().memory_bytes, 8ULL << 30);
}

TEST(ProbeCapacity, ALimitAnywhereAboveTheProcessHolds) {
  FakeRoot root;
  root.write("/proc/self/cgroup", "0::/user/antdt\n");
  root.write("/sys/fs/cgroup/user/antdt/memory.max", "max\n");
  root.write("/sys/fs/cgroup/user/memory.max", "1073741824\n");
  root.write("/sys/fs/cgroup/user/antdt/cpu.max", "50000 100000\n");
  root.write("/sys/fs/cgroup/user/cpu.max", "max 100000\n");
  EXPECT_EQ(root.probe().memory_bytes, 1ULL << 30);
  EXPECT_DOUBLE_EQ(root.probe().cpus, 0.5);
}

TEST(ProbeCapacity, VersionOneHierarchiesCountToo) {
  FakeRoot root;
  root.write("/proc/self/cgroup", "4:memory:/box\n1:cpu,cpuacct:/box\n0::/\n");
  root.write("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "2147483648\n");
  root.write("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "25000\n");
  root.write("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(root.probe().memory_bytes, 2ULL << 30);
  EXPECT_DOUBLE_EQ(root.probe().cpus, 0.25);
}

TEST(ProbeCapacity, CountsNumberedDevicesOnly) {
  FakeRoot root;
  for (const char* name : {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia", "null"}) {
    root.write(std::string("/dev/") + name, "");
  }
  EXPECT_EQ(root.probe().devices, 2u);
}

// ---------------------------------------------------------------------- files

TEST(ExitFile, EveryKindOfEndIsReadBackAsItWas) {
  for (const ExitStatus& status :
       {ExitStatus{0, 0, "", ""}, ExitStatus{7, 0, "", "two\nlines\n"}, ExitStatus{-1, 9, "", "x"},
        ExitStatus{-1, 0, "cannot execute /x: No such file", "y\n"},
        ExitStatus{-1, 9, "", "oom x\n", "cgroup: the kernel killed 1 process"},
        ExitStatus{1, 0, "", "z", "said: MemoryError"}, ExitStatus{75, 0, "", "z", "", true},
        ExitStatus{-1, 9, "", "", "", true}}) {
    const auto again = parse_exit(format_exit(status));
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, status);
  }
}

TEST(ExitFile, NonsenseIsAnError) {
  for (const char* text : {"", "code 7", "code x\n", "ended\n", "\n"}) {
    EXPECT_FALSE(parse_exit(text)) << text;
  }
}

TEST(PidFile, AHalfWrittenPidFileCountsAsEmpty) {
  const std::string whole = format_pid_file({{12, 345}, {13, 346}});
  const auto pids = parse_pid_file(whole);
  ASSERT_TRUE(pids);
  EXPECT_EQ(pids->shim.pid, 12);
  EXPECT_EQ(pids->worker.start_time, 346u);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(parse_pid_file(whole.substr(0, size))) << size;
  }
}

TEST(JobId, ThatCouldLeaveItsDirectoryIsNotOne) {
  EXPECT_TRUE(valid_job_id("ctr-01HXYZ_a.b"));
  for (const char* bad : {"", "..", ".x", "a/b", "a b", "a\n"}) EXPECT_FALSE(valid_job_id(bad));
  EXPECT_FALSE(valid_job_id(std::string(129, 'a')));
}

}  // namespace
}  // namespace antdt::antdtd
