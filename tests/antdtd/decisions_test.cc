// The agent's smaller values: environment, keeper, sums, host, files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "antdtd/agent/job_keeper.h"
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

// --------------------------------------------------------------------- keeper

using keeper::JobKeeper;

// A keeper that receives one event after the other, and its effects.
class Keeper {
 public:
  struct Wanted {
    bool launch = false, kill = false, kill_shim = false;
    std::string note;
  };
  explicit Keeper(Duration hung_after = {}) : machine_(hung_after) {}
  Wanted start(MonoTime now) { return step(keeper::StartOrdered{}, now); }
  void adopt(Attempt attempt, MonoTime now) { step(keeper::DaemonAdopted{attempt}, now); }
  Wanted exited(const ExitStatus& status, MonoTime now) {
    return step(keeper::DaemonExited{status}, now);
  }
  void job_is_over() { step(keeper::JobEndAnnounced{}, kNow); }
  void heard(MonoTime now) { step(keeper::DaemonSpoke{}, now); }
  Wanted tick(MonoTime now) { return step(keeper::TimePassed{}, now); }
  [[nodiscard]] const JobKeeper* operator->() const { return &machine_; }

 private:
  Wanted step(const keeper::Input& input, MonoTime now) {
    keeper::Effects effects;
    machine_.step(input, now, effects);
    Wanted wanted;
    for (const keeper::Effect& effect : effects) {
      if (std::holds_alternative<keeper::LaunchDaemon>(effect)) wanted.launch = true;
      if (std::holds_alternative<keeper::KillDaemon>(effect)) wanted.kill = true;
      if (std::holds_alternative<keeper::KillShim>(effect)) wanted.kill_shim = true;
      if (const auto* said = std::get_if<keeper::ReportOnJob>(&effect)) wanted.note = said->text;
    }
    return wanted;
  }
  JobKeeper machine_;
};

TEST(JobKeeper, AnEndThatTheDaemonChoseIsTheJobsEnd) {
  for (const int code : {0, 1, 2, 3, 4, 75}) {
    Keeper keeper;
    EXPECT_TRUE(keeper.start(kNow).launch);
    EXPECT_FALSE(keeper.exited({code, 0, {}, {}}, kNow).launch);
    EXPECT_EQ(keeper->state(), JobKeeper::State::kOver) << code;
  }
}

TEST(JobKeeper, ASignalOrAnUnknownCodeStartsItAgainWithANewAttempt) {
  for (const ExitStatus& death : {ExitStatus{-1, 9, {}, {}}, ExitStatus{134, 0, {}, {}}}) {
    Keeper keeper;
    EXPECT_TRUE(keeper.start(kNow).launch);
    EXPECT_FALSE(keeper.exited(death, kNow).launch);
    ASSERT_TRUE(keeper->next_wakeup());
    EXPECT_TRUE(keeper.tick(*keeper->next_wakeup()).launch);
    EXPECT_EQ(keeper->attempt(), Attempt{2});
  }
}

TEST(JobKeeper, TheFirstRestartIsAtOnceAndLaterOnesPause) {
  Keeper keeper;
  EXPECT_TRUE(keeper.start(kNow).launch);
  keeper.exited({-1, 9, {}, {}}, kNow);
  EXPECT_TRUE(keeper.tick(kNow).launch);
  keeper.exited({-1, 9, {}, {}}, kNow);
  EXPECT_FALSE(keeper.tick(kNow).launch);
  EXPECT_TRUE(keeper.tick(kNow + seconds(2)).launch);
}

// The exit status of a job daemon that cannot begin: keys, a lock, a disk.
const ExitStatus kCannotBegin{5, 0, {}, "antdt-jobd: reading the key job.key: No such file\n"};

TEST(JobKeeper, ADaemonThatCannotBeginAgainIsTriedAfterGrowingPausesUntilPatienceIsOver) {
  Keeper keeper;
  EXPECT_TRUE(keeper.start(kNow).launch);
  keeper.exited({-1, 9, {}, {}}, kNow);
  MonoTime now = kNow;
  Duration last{};
  int tries = 0;
  Keeper::Wanted decision;
  for (; !keeper->ended(); ++tries) {
    ASSERT_LT(tries, 1000) << "for ever";
    now = *keeper->next_wakeup();
    ASSERT_TRUE(keeper.tick(now).launch);
    if (tries % 2 == 1) now += JobKeeper::kSoon;  // its disk was slow to say no
    decision = keeper.exited(kCannotBegin, now);
    if (keeper->ended()) break;
    const Duration pause = *keeper->next_wakeup() - now;
    EXPECT_GE(pause, last) << tries;
    EXPECT_LE(pause, JobKeeper::kLongestPause) << tries;
    last = pause;
  }
  EXPECT_EQ(last, JobKeeper::kLongestPause);
  EXPECT_GE(now - kNow, JobKeeper::kPatience);
  EXPECT_LE(now - kNow, JobKeeper::kPatience + JobKeeper::kLongestPause + JobKeeper::kSoon);
  EXPECT_EQ(keeper->state(), JobKeeper::State::kGaveUp);
  EXPECT_THAT(decision.note, HasSubstr("exit code 5"));
  EXPECT_THAT(decision.note, HasSubstr("reading the key job.key")) << "its last words";
  EXPECT_EQ(keeper->next_wakeup(), std::nullopt);
}

TEST(JobKeeper, ATroubleThatPassesLeavesNothingBehind) {
  Keeper keeper;
  EXPECT_TRUE(keeper.start(kNow).launch);
  MonoTime now = kNow;
  for (int outage = 0; outage < 5; ++outage) {
    keeper.exited({-1, 9, {}, {}}, now);
    for (int times = 0; times < 30; ++times) {
      now = *keeper->next_wakeup();
      ASSERT_TRUE(keeper.tick(now).launch);
      keeper.exited(kCannotBegin, now);
    }
    now = *keeper->next_wakeup();
    ASSERT_TRUE(keeper.tick(now).launch);
    now += JobKeeper::kSoon;  // the job daemon runs again
  }
  EXPECT_EQ(keeper->state(), JobKeeper::State::kUp);
}

TEST(JobKeeper, ADaemonThatCrashesAtTheSameInputAgainAndAgainIsNotStartedForEver) {
  Keeper keeper;
  EXPECT_TRUE(keeper.start(kNow).launch);
  MonoTime now = kNow;
  Keeper::Wanted decision;
  std::size_t crashes = 0;
  while (!keeper->ended()) {
    ASSERT_LT(crashes, 100U) << "for ever";
    now += seconds(5);  // the daemon lives until the worker asks again
    decision = keeper.exited({-1, SIGABRT, {}, "check failed: a != b\n"}, now);
    ++crashes;
    if (keeper->ended()) break;
    now = *keeper->next_wakeup();
    EXPECT_TRUE(keeper.tick(now).launch);
  }
  EXPECT_EQ(crashes, JobKeeper::kMostCrashes);
  EXPECT_THAT(decision.note, HasSubstr("crashed 10 times"));
  EXPECT_THAT(decision.note, HasSubstr("signal 6"));
  EXPECT_THAT(decision.note, HasSubstr("check failed: a != b"));
}

TEST(JobKeeper, CrashesFarApartAndKillsByOthersAreNoRow) {
  Keeper keeper;
  EXPECT_TRUE(keeper.start(kNow).launch);
  MonoTime now = kNow;
  for (int death = 0; death < 100; ++death) {
    const bool crash = death % 2 == 0;
    now += crash ? JobKeeper::kSettled : seconds(3);
    keeper.exited({-1, crash ? SIGSEGV : SIGKILL, {}, {}}, now);
    ASSERT_TRUE(keeper->next_wakeup()) << death;
    now = *keeper->next_wakeup();
    EXPECT_TRUE(keeper.tick(now).launch);
  }
}

TEST(JobKeeper, AfterADaemonThatLivedForAWhileTheCountBeginsAnew) {
  Keeper keeper;
  EXPECT_TRUE(keeper.start(kNow).launch);
  for (int death = 1; death <= 20; ++death) {
    keeper.exited({-1, 9, {}, {}}, kNow + seconds(4 * death));
    EXPECT_TRUE(keeper.tick(kNow + seconds(4 * death + 1)).launch) << death;
  }
}

TEST(JobKeeper, ADaemonThatCannotBeExecutedIsNotTriedAgain) {
  Keeper keeper;
  EXPECT_TRUE(keeper.start(kNow).launch);
  const auto decision = keeper.exited({-1, 0, "cannot execute /x: No such file", {}}, kNow);
  EXPECT_EQ(keeper->state(), JobKeeper::State::kGaveUp);
  EXPECT_THAT(decision.note, HasSubstr("cannot execute /x"));
}

TEST(JobKeeper, AfterTheJobIsOverNoDeathStartsItAgain) {
  Keeper keeper;
  EXPECT_TRUE(keeper.start(kNow).launch);
  keeper.job_is_over();
  keeper.exited({-1, 9, {}, {}}, kNow);
  EXPECT_EQ(keeper->state(), JobKeeper::State::kOver);
}

TEST(JobKeeper, ADaemonThatAnnouncedTheEndMayBeSilentWhileItsLastHooksRun) {
  Keeper keeper(seconds(10));
  keeper.start(kNow);
  keeper.heard(kNow);
  keeper.job_is_over();
  EXPECT_FALSE(keeper.tick(kNow + JobKeeper::kAfterTheEnd - seconds(1)).kill);
  EXPECT_TRUE(keeper.tick(kNow + JobKeeper::kAfterTheEnd).kill) << "its agent should have";
}

TEST(JobKeeper, AJobDaemonThatWasHeardAndFallsSilentIsKilledOnceAndStartedAgain) {
  Keeper keeper(seconds(30));
  keeper.start(kNow);
  EXPECT_EQ(keeper->next_wakeup(), kNow + JobKeeper::kUnheard)
      << "not heard yet: it may be replaying its journal";
  keeper.heard(kNow);
  keeper.heard(kNow + seconds(5));
  EXPECT_FALSE(keeper.tick(kNow + seconds(34)).kill);
  EXPECT_EQ(keeper->next_wakeup(), kNow + seconds(35));
  EXPECT_TRUE(keeper.tick(kNow + seconds(35)).kill);
  EXPECT_FALSE(keeper.tick(kNow + seconds(36)).kill);
  keeper.exited({-1, 9, {}, {}}, kNow + seconds(36));
  EXPECT_TRUE(keeper.tick(kNow + seconds(36)).launch);
  EXPECT_FALSE(keeper.tick(kNow + seconds(300)).kill) << "the new one was not heard yet";
}

TEST(JobKeeper, AShimThatDoesNotKillItsSilentJobDaemonIsKilledItself) {
  Keeper keeper(seconds(30));
  keeper.start(kNow);
  keeper.heard(kNow);
  EXPECT_TRUE(keeper.tick(kNow + seconds(30)).kill);
  EXPECT_FALSE(keeper.tick(kNow + seconds(34)).kill_shim);
  EXPECT_EQ(keeper->next_wakeup(), kNow + seconds(35));
  EXPECT_TRUE(keeper.tick(kNow + seconds(35)).kill_shim);
  EXPECT_TRUE(keeper.tick(kNow + seconds(40)).kill_shim) << "until it is gone";
  keeper.exited({-1, 9, {}, {}}, kNow + seconds(41));
  EXPECT_TRUE(keeper.tick(kNow + seconds(41)).launch);
}

TEST(JobKeeper, ADaemonThatIsNeverHeardIsKilledInTheEnd) {
  Keeper keeper(seconds(30));
  keeper.start(kNow);
  EXPECT_FALSE(keeper.tick(kNow + JobKeeper::kUnheard - seconds(1)).kill);
  EXPECT_TRUE(keeper.tick(kNow + JobKeeper::kUnheard).kill);
}

TEST(JobKeeper, ADaemonThatStoppedWhileItsAgentWasReplacedIsKilledToo) {
  Keeper keeper(seconds(30));
  keeper.adopt(Attempt{3}, kNow);
  EXPECT_TRUE(keeper.tick(kNow + seconds(30)).kill);
}

TEST(JobKeeper, WithoutABoundSilenceIsNothing) {
  Keeper keeper;
  keeper.start(kNow);
  keeper.heard(kNow);
  EXPECT_FALSE(keeper.tick(kNow + std::chrono::hours(10)).kill);
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
