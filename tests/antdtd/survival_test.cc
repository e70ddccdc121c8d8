// Tests of deaths: the evidence of their cause, and who starts the agent again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "antdtd/shim/cgroup.h"
#include "antdtd/shim/linger.h"
#include "antdtd/shim/out_of_memory.h"
#include "antdtd/shim/shim_files.h"
#include "antdtd/shim/successor.h"
#include "core/os/fs.h"
#include "core/os/process.h"
#include "tests/antdtd/agent_fixture.h"

namespace antdt::antdtd {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using Wish = AgentWatch::Wish;

const MonoTime kNow = MonoTime{} + std::chrono::hours(1);

// --------------------------------------------------------------- out of memory

ExitStatus exited(int code, int signal, std::string last_lines) {
  return {code, signal, {}, std::move(last_lines)};
}

TEST(OutOfMemory, TheCountersOfTheCgroupAreTheEvidence) {
  const std::string events = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n";
  EXPECT_EQ(oom_kills(events), 2u);
  EXPECT_EQ(oom_evidence(exited(-1, 9, ""), events),
            "cgroup: the kernel killed 2 processes for want of memory");
  EXPECT_EQ(oom_evidence(exited(1, 0, "a loader died"), events),
            "cgroup: the kernel killed 2 processes for want of memory");
}

TEST(OutOfMemory, ALimitThatWasReachedWithoutAKillIsNoEvidence) {
  const std::string events = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 0\noom_group_kill 0\n";
  EXPECT_EQ(oom_evidence(exited(-1, 9, ""), events), "");
  EXPECT_EQ(oom_kills(""), std::nullopt);
  EXPECT_EQ(oom_kills("oom_kill"), std::nullopt);
}

TEST(OutOfMemory, AProgramsOwnReportOfLackOfMemoryIsEvidence) {
  for (const char* words :
       {"terminate called after throwing an instance of 'std::bad_alloc'",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "RuntimeError: CUDA error: out of memory", "MemoryError",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "OSError: [Errno 12] Cannot allocate memory",
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 8 GiB",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:66] DefaultCPUAllocator: can't allocate "
        "memory"}) {
    const std::string lines = std::string("epoch 1\n  ") + words + "\n[the end]\n";
    EXPECT_EQ(oom_evidence(exited(1, 0, lines), ""), std::string("said: ") + words);
    EXPECT_EQ(oom_evidence(exited(-1, 6, lines), ""), std::string("said: ") + words);
  }
}

TEST(OutOfMemory, OtherEndsAreNot) {
  EXPECT_EQ(oom_evidence(exited(0, 0, "MemoryError was caught\n"), ""), "") << "it ended well";
  EXPECT_EQ(oom_evidence(exited(-1, 9, ""), ""), "") << "a SIGKILL alone";
  EXPECT_EQ(oom_evidence(exited(-1, 9, "out of memory, smaller batch\n"), ""), "")
      << "it had survived that, and was killed by somebody";
  EXPECT_EQ(oom_evidence(exited(1, 0, "ValueError: memory format\n"), ""), "");
  // What survived_text() in trainer/torch/device/out_of_memory.h says.
  const std::string survived =
      "cuda:1 has no room for a micro-batch of 512 records: 1000 bytes were asked for; of the "
      "device's 3000 bytes, 200 are free; tensors of this process use 2500; from now on "
      "micro-batches have at most 256 records here\n";
  EXPECT_EQ(oom_evidence(exited(-1, SIGSEGV, survived + "x\n"), ""), "")
      << "it had survived that, and failed in another way";
  EXPECT_EQ(oom_evidence({-1, 0, "cannot execute /x: Cannot allocate memory", {}}, ""), "");
}

// ------------------------------------------------------------ who starts agents

TEST(AgentWatch, AnAgentThatIsGoneIsStartedAtOnce) {
  AgentWatch watch(Duration::zero(), seconds(15));
  EXPECT_EQ(watch.look(true, seconds(1), kNow), Wish::kNothing);
  EXPECT_EQ(watch.look(false, seconds(1), kNow), Wish::kStart);
}

TEST(AgentWatch, AStartedAgentHasTimeToTakeTheLockAndIsThenRetriedLessOften) {
  AgentWatch watch(Duration::zero(), seconds(15));
  std::vector<double> starts;
  for (int tenth = 0; tenth < 400; ++tenth) {
    const MonoTime now = kNow + tenth * std::chrono::milliseconds(100);
    if (watch.look(false, {}, now) == Wish::kStart) starts.push_back(to_seconds(now - kNow));
  }
  EXPECT_THAT(starts, ::testing::ElementsAre(0, 1, 3, 7, 15, 25, 35));
}

TEST(AgentWatch, OneThatLivedForAMomentIsStartedAgainASecondAfterTheLastStart) {
  AgentWatch watch(Duration::zero(), seconds(15));
  EXPECT_EQ(watch.look(false, {}, kNow), Wish::kStart);
  EXPECT_EQ(watch.look(true, {}, kNow + std::chrono::milliseconds(100)), Wish::kNothing);
  EXPECT_EQ(watch.look(false, {}, kNow + std::chrono::milliseconds(200)), Wish::kNothing);
  EXPECT_EQ(watch.look(false, {}, kNow + seconds(1)), Wish::kStart);
  EXPECT_EQ(watch.look(true, {}, kNow + seconds(2)), Wish::kNothing);
  EXPECT_EQ(watch.look(false, {}, kNow + seconds(60)), Wish::kStart);
}

TEST(AgentWatch, AWorkersShimLeavesItToTheJobDaemonsFirst) {
  AgentWatch watch(seconds(3), seconds(15));
  EXPECT_EQ(watch.look(false, {}, kNow), Wish::kNothing);
  EXPECT_EQ(watch.look(false, {}, kNow + seconds(2)), Wish::kNothing);
  EXPECT_EQ(watch.look(true, {}, kNow + seconds(3)), Wish::kNothing);
  EXPECT_EQ(watch.look(false, {}, kNow + seconds(10)), Wish::kNothing) << "gone anew";
  EXPECT_EQ(watch.look(false, {}, kNow + seconds(13)), Wish::kStart);
}

TEST(AgentWatch, AnAgentThatLivesAndClaimsNothingIsEnded) {
  AgentWatch watch(Duration::zero(), seconds(15));
  EXPECT_EQ(watch.look(true, seconds(14), kNow), Wish::kNothing);
  EXPECT_EQ(watch.look(true, seconds(15), kNow), Wish::kKill);
  AgentWatch trusting(Duration::zero(), Duration::zero());
  EXPECT_EQ(trusting.look(true, std::chrono::hours(1), kNow), Wish::kNothing);
}

// ------------------------------------------------------------------- lingering

TEST(AgentSuccessor, ALostEnvironmentIsToldOnceByTheShimThatWouldStartTheAgentFirst) {
  const TempDir dir;
  const MonoTime now = MonoTime{} + std::chrono::hours(1);
  for (const Duration patience : {Duration(seconds(3)), Duration::zero()}) {
    AgentSuccessor shim({{"/no/such/agent"}, dir / "lock", dir / "agent.log", patience, {}});
    for (int n = 0; n < 10; ++n) {
      shim.tend(Duration::zero(), now + n * seconds(10));
      const std::string told = read_file(dir / "agent.log").value_or("");
      const std::size_t first =
          told.find("cannot be started again: reading " + (dir / "environment"));
      const bool is_due = patience == Duration::zero() && n > 0;
      EXPECT_EQ(first != std::string::npos, is_due) << n;
      EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), is_due ? 1 : 0) << n;
    }
  }
}

class Lingering : public ::testing::Test {
 protected:
  [[nodiscard]] std::string process(const std::string& name) const {
    return dir_ / ("job/" + name);
  }
  void make(const std::string& name) const {
    ASSERT_TRUE(make_directories(process(name)));
    ASSERT_TRUE(write_file_atomic(pid_file(process(name)), ""));
  }
  void remove(const std::string& name) const { std::filesystem::remove_all(dir_ / name); }
  TempDir dir_;
};

TEST_F(Lingering, EndsWithTheJob) {
  make("d0.1");
  EXPECT_FALSE(was_succeeded(process("d0.1")));
  remove("job");
  EXPECT_TRUE(was_succeeded(process("d0.1")));
}

TEST_F(Lingering, EndsWhenTheNextJobDaemonHasItsShim) {
  make("d0.1");
  make("w0.1");
  make("d0.2");
  const auto worker = PidLock::take(process("w0.1"));
  ASSERT_TRUE(worker);
  remove("job/d0.1");
  EXPECT_FALSE(was_succeeded(process("d0.1"))) << "only a worker's shim lives";
  const auto next = PidLock::take(process("d0.2"));
  ASSERT_TRUE(next);
  EXPECT_TRUE(was_succeeded(process("d0.1")));
}

TEST_F(Lingering, GoesOnWhileTheAgentHasNotTakenNote) {
  make("d0.1");
  make("d0.2");
  const auto next = PidLock::take(process("d0.2"));
  ASSERT_TRUE(next);
  EXPECT_FALSE(was_succeeded(process("d0.1")));
}

// --------------------------------------------------------------------- orphans

TEST(StartAsOrphan, TheStartedProcessIsAnOrphanAndItsOutputIsInTheLog) {
  const TempDir dir;
  const std::string log = dir / "log";
  ASSERT_TRUE(start_as_orphan({"/bin/sh", "-c", "echo $PPID $MARK >&2; sleep 0.2; echo done"},
                              {"MARK=set", "PATH=/bin:/usr/bin"}, log));
  ASSERT_TRUE(await([&] { return read_file(log).value_or("").ends_with("done\n"); }));
  EXPECT_NE(std::stoi(*read_file(log)), getpid());
  EXPECT_THAT(*read_file(log), HasSubstr(" set\n"));
}

TEST(StartAsOrphan, AnEnvironmentIsReadBackAsItWas) {
  for (const std::vector<std::string>& list :
       {std::vector<std::string>{}, {"A=1"}, {"A=1\n2", "B=", "C=x=y"}}) {
    EXPECT_EQ(parse_environment(format_environment(list)), list);
  }
}

TEST(StartAsOrphan, AProgramThatIsNotThereIsAnError) {
  const Status started = start_as_orphan({"/no/such/agent"}, {}, "/dev/null");
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("/no/such/agent"));
}

// --------------------------------------------------------------------- cgroups

class Cgroups : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = make_test_cgroup();
    if (root_.empty()) {
      GTEST_SKIP() << "no cgroup (version 2) can be made here; ANTDT_TEST_CGROUP may name a parent";
    }
  }
  void TearDown() override {
    if (!root_.empty()) {
      EXPECT_TRUE(remove_cgroup(root_, seconds(10)));
    }
  }
  std::string root_;
};

const ProcessKey kKey{"ctr-1", {{'w', 3}, Attempt{2}}};

pid_t start_in(const std::string& group) {
  const std::string procs = group + "/cgroup.procs";
  const pid_t pid = fork();
  if (pid != 0) return pid;
  if (!enter_cgroup(procs.c_str())) _exit(1);
  for (;;) pause();
}

TEST_F(Cgroups, AProcessIsPutIntoOneKilledWithItAndTheGroupIsRemoved) {
  const auto root = CgroupRoot::open(root_);
  ASSERT_TRUE(root);
  const auto group = root->make(kKey, {});
  ASSERT_TRUE(group) << group.error().message;
  const pid_t pid = start_in(*group);
  ASSERT_TRUE(await([&] { return !read_file(*group + "/cgroup.procs").value_or("").empty(); }));
  kill_cgroup(*group);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_TRUE(remove_cgroup(*group, seconds(10)));
  EXPECT_FALSE(std::filesystem::exists(*group));
}

TEST_F(Cgroups, AGroupOfTheSameNameIsEndedFirst) {
  const auto root = CgroupRoot::open(root_);
  ASSERT_TRUE(root);
  const auto first = root->make(kKey, {});
  ASSERT_TRUE(first);
  const pid_t pid = start_in(*first);
  ASSERT_TRUE(await([&] { return !read_file(*first + "/cgroup.procs").value_or("").empty(); }));
  // A zombie is no longer in the cgroup, so it need not be reaped first.
  EXPECT_TRUE(root->make(kKey, {}));
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_TRUE(remove_cgroup(*first, seconds(10)));
}

TEST_F(Cgroups, MemoryBeyondTheLimitEndsTheProcessAndLeavesEvidence) {
  const auto root = CgroupRoot::open(root_);
  ASSERT_TRUE(root);
  if (!root->limits_memory()) GTEST_SKIP() << "no memory controller in " << root_;
  constexpr std::size_t kLimit = 32u << 20;
  const auto group = root->make(kKey, {kLimit, 0});
  ASSERT_TRUE(group) << group.error().message;
  const std::string procs = *group + "/cgroup.procs";
  const pid_t pid = fork();
  if (pid == 0) {
    if (!enter_cgroup(procs.c_str())) _exit(1);
    std::vector<std::string> taken;  // touched, so that it counts
    for (int n = 0; n < 64; ++n) taken.emplace_back(kLimit / 8, 'x');
    _exit(taken.size() == 64 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_THAT(oom_evidence(exited(-1, WTERMSIG(status), ""), memory_events(*group)),
              HasSubstr("for want of memory"));
  EXPECT_TRUE(remove_cgroup(*group, seconds(10)));
}

TEST(CgroupRootAt, AnOrdinaryDirectoryIsNoCgroup) {
  const TempDir dir;
  const auto root = CgroupRoot::open(dir.path());
  ASSERT_FALSE(root);
  EXPECT_THAT(root.error().message, HasSubstr(dir.path()));
}

}  // namespace
}  // namespace antdt::antdtd
