// A real agent is killed; tests what happens to its processes.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "core/os/process.h"
#include "core/wire/agent_messages.h"
#include "tests/antdtd/agent_fixture.h"

namespace antdt::antdtd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

bool is_gone(pid_t pid) { return !process_start_time(pid); }

pid_t parent_of(pid_t pid) {
  const std::string stat = read_file(fmt::format("/proc/{}/stat", pid)).value_or(") ? 0");
  return std::stoi(stat.substr(stat.rfind(')') + 4));
}

class AgentSurvival : public AgentTest {
 protected:
  // A job whose daemon is a shell that waits for a file, and ends the job then.
  std::uint32_t start_job() {
    Peer launcher(context_, path("s/agent.sock"), {job_, {}});
    const std::string script = "while [ ! -e '" + path("go") + "' ]; do sleep 0.02; done; exit 0";
    launcher.send(wire::StartJob{path("run"), {"/bin/sh", "-c", script}}, std::nullopt, 1);
    return launcher.await_message<wire::JobStarted>().pid;
  }
  void start_kept_job() {
    start_kept_agent();
    job_daemon_ = static_cast<pid_t>(start_job());
    first_agent_ = agent_;
  }
  [[nodiscard]] std::optional<pid_t> agent_now() const {
    return FileLock::owner(path("state/lock"));
  }
  [[nodiscard]] bool another_agent_runs() const {
    const auto now = agent_now();
    return now && *now != first_agent_;
  }
  void end_job() {
    ASSERT_TRUE(write_file_atomic(path("go"), ""));
    EXPECT_TRUE(await([&] { return !std::filesystem::exists(path("s")); }))
        << "the agent ends with the job and removes what is its";
    EXPECT_TRUE(await([&] { return !agent_now(); }));
    EXPECT_TRUE(await([&] { return !std::filesystem::exists(path("state")); }));
    EXPECT_TRUE(await([&] { return processes_of(job_).empty(); }));
  }
  pid_t first_agent_ = 0;
  pid_t job_daemon_ = 0;
};

TEST_F(AgentSurvival, AKilledAgentIsStartedAgainAndAdoptsWhatItKept) {
  start_kept_job();
  std::uint32_t worker = 0;
  {
    Peer daemon = attach();
    worker = start(daemon, 0, "sleep 1000");
  }
  // It looks like what is removed from /tmp.
  const std::string start_file = path("state/jobs/" + job_ + "/w0.1/start");
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 30);
  std::filesystem::last_write_time(start_file, long_ago);
  kill_agent();
  ASSERT_TRUE(await([&] { return another_agent_runs(); }));
  Peer daemon = attach(2);
  EXPECT_TRUE(await([&] {
    return std::filesystem::last_write_time(start_file) > long_ago + std::chrono::hours(1);
  }));
  wire::StartProcess again = request("sleep 1000");
  daemon.send(again, key(0), 1);
  EXPECT_EQ(daemon.await_message<wire::ProcessStarted>().pid, worker) << "the same, not another";
  EXPECT_FALSE(is_gone(job_daemon_));
  end_job();
}

TEST_F(AgentSurvival, TheSuccessorIsNoDescendantOfWhatItKeeps) {
  start_kept_job();
  kill_agent();
  ASSERT_TRUE(await([&] { return another_agent_runs(); }));
  std::vector<pid_t> ancestors;
  for (pid_t pid = agent_now().value_or(0); pid > 1; pid = parent_of(pid)) ancestors.push_back(pid);
  EXPECT_THAT(ancestors, ::testing::Not(::testing::Contains(parent_of(job_daemon_))));
  end_job();
}

TEST_F(AgentSurvival, AnAgentAndItsJobDaemonKilledTogetherComeBack) {
  start_kept_job();
  kill(agent_, SIGSTOP);  // so that it does not start another
  kill(job_daemon_, SIGKILL);
  ASSERT_TRUE(await([&] { return is_gone(job_daemon_); }));
  kill_agent();
  ASSERT_TRUE(await([&] { return another_agent_runs(); }));
  Peer launcher(context_, path("s/agent.sock"), {job_, {}});
  launcher.send(wire::StartJob{path("run"), {"/bin/true"}}, std::nullopt, 1);
  const auto next = static_cast<pid_t>(launcher.await_message<wire::JobStarted>().pid);
  EXPECT_NE(next, job_daemon_);
  EXPECT_FALSE(is_gone(next));
  end_job();
}

TEST_F(AgentSurvival, WhereTheJobDaemonsShimIsGoneTooThatOfAWorkerStartsTheAgent) {
  start_kept_job();
  std::uint32_t worker = 0;
  {
    Peer daemon = attach();
    worker = start(daemon, 0, "sleep 1000");
  }
  const pid_t shim = parent_of(job_daemon_);
  kill(agent_, SIGSTOP);  // so that it does not start another
  kill(shim, SIGKILL);
  ASSERT_TRUE(await([&] { return is_gone(job_daemon_); })) << "it is killed with its shim";
  kill_agent();
  ASSERT_TRUE(await([&] { return another_agent_runs(); }));
  // The agent is not in the tree that ends with the worker, neither by its parents nor by its
  // marks.
  EXPECT_THAT(processes_of(job_), ::testing::Not(::testing::Contains(*agent_now())));
  Peer daemon = attach(2);
  EXPECT_FALSE(is_gone(static_cast<pid_t>(worker)));
  daemon.send(wire::StopProcess{0}, key(0));
  EXPECT_EQ(daemon.await_message<wire::ProcessExited>().signal, 9);
  EXPECT_TRUE(another_agent_runs());
  end_job();
}

TEST_F(AgentSurvival, AStoppedAgentIsReplaced) {
  start_kept_agent({"--orphan-timeout", "12"});
  job_daemon_ = static_cast<pid_t>(start_job());
  first_agent_ = agent_;
  kill(agent_, SIGSTOP);
  ASSERT_TRUE(await([&] { return another_agent_runs(); }));
  EXPECT_EQ(WTERMSIG(wait_for_agent_end()), SIGKILL);
  EXPECT_FALSE(is_gone(job_daemon_));
  end_job();
}

TEST_F(AgentSurvival, AFileThatAKilledAgentWasWritingIsRemovedWithTheJob) {
  start_kept_job();
  ASSERT_TRUE(write_file_atomic(path("state/environment.aSaLfl"), "HOME=/ro"));
  end_job();
}

TEST_F(AgentSurvival, AJobDaemonThatSaysNothingMoreIsReplaced) {
  start_agent({"--orphan-timeout", "6"});
  job_daemon_ = static_cast<pid_t>(start_job());
  Peer daemon = attach();  // replaces the killed job daemon
  daemon.send(wire::Heartbeat{});
  EXPECT_TRUE(await([&] {
    return read_file(path("run/agent.log")).value_or("").find("started again") != std::string::npos;
  }));
  EXPECT_TRUE(is_gone(job_daemon_));
  Peer launcher(context_, path("s/agent.sock"), {job_, {}});
  launcher.send(wire::StartJob{path("run"), {"/bin/true"}}, std::nullopt, 1);
  EXPECT_NE(static_cast<pid_t>(launcher.await_message<wire::JobStarted>().pid), job_daemon_);
  EXPECT_THAT(read_file(path("run/agent.log")).value_or(""), HasSubstr("said nothing for"));
  end_job();
}

TEST_F(AgentSurvival, ProcessesWhoseDirectoryIsRemovedEndAtOnceAndStartNoAgent) {
  start_kept_job();
  {
    Peer daemon = attach();
    start(daemon, 0, "sleep 1000");
  }
  std::filesystem::remove_all(path("s"));
  std::filesystem::remove_all(path("state"));
  kill_agent();
  EXPECT_TRUE(await([&] { return processes_of(job_).empty() && is_gone(job_daemon_); }));
  EXPECT_FALSE(agent_now());
  EXPECT_THAT(log_of("w0.1.err"), HasSubstr("no agent has claimed"));
}

TEST_F(AgentSurvival, AnEndForLackOfMemoryIsReportedWithTheProgramsLastLines) {
  start_agent();
  Peer daemon = attach();
  start(daemon, 0, "echo \"  what():  std::bad_alloc\" >&2; kill -ABRT $$");
  const auto ended = daemon.await_message<wire::ProcessExited>();
  EXPECT_EQ(ended.signal, 6);
  EXPECT_EQ(ended.oom, "said: what():  std::bad_alloc");
}

// The claim of the worker's shim must not look like another agent's.
TEST_F(AgentSurvival, AnAgentThatAdoptsAWorkerDoesNotSayThatItsDeviceIsLeasedElsewhere) {
  ASSERT_TRUE(write_file_atomic(path("devices"), "gpu uuid=GPU-a\n"));
  ASSERT_TRUE(make_directories(path("claims"), 0700));
  setenv("FAKE_NVML", path("devices").c_str(), 1);
  const std::vector<std::string> flags = {"--nvml", ANTDT_FAKE_NVML, "--device-claims",
                                          path("claims")};
  start_agent(flags);
  {
    Peer launcher(context_, path("s/agent.sock"), {"", {}});
    ASSERT_TRUE(await([&] {
      launcher.send(wire::Hello{});
      return launcher.await_message<wire::AgentWelcome>().devices == 1;
    }));
    Peer daemon = attach();
    wire::StartProcess wanted = request("sleep 1000");
    wanted.devices = 1;
    daemon.send(wanted, key(0), 1);
    ASSERT_GT(daemon.await_message<wire::ProcessStarted>().pid, 0U);
  }
  kill_agent();
  start_agent(flags);
  unsetenv("FAKE_NVML");
  // The agent would say it before it says that it found the worker.
  const auto log = [&] { return read_file(path("agent.log")).value_or(""); };
  ASSERT_TRUE(await([&] { return log().find("found w0 (attempt 1)") != std::string::npos; }));
  EXPECT_THAT(log(), Not(HasSubstr("is leased by another agent")));
}

TEST_F(AgentSurvival, AWorkerRunsInACgroupOfItsOwnThatGoesWithIt) {
  const std::string made = make_test_cgroup();
  if (made.empty()) GTEST_SKIP() << "no cgroup (version 2) can be made here";
  start_agent({"--cgroup", made});
  Peer daemon = attach();
  const std::uint32_t pid =
      start(daemon, 0, "setsid sleep 1000 & cat /proc/self/cgroup; sleep 1000");
  const std::string group = made + "/antdt-" + job_ + "-w0.1";
  ASSERT_TRUE(await([&] { return log_of("w0.1.out").find("antdt-" + job_) != std::string::npos; }));
  EXPECT_TRUE(std::filesystem::exists(group));
  // An agent that finds the worker and its shim dead reports both as killed.
  kill(parent_of(static_cast<pid_t>(pid)), SIGKILL);
  EXPECT_EQ(daemon.await_message<wire::ProcessExited>().signal, 9);
  daemon.send(wire::ExitSeen{}, key(0));
  start(daemon, 0, "sleep 1000", 2);
  EXPECT_TRUE(await([&] { return !std::filesystem::exists(group); }));
  daemon.send(wire::StopProcess{0}, key(0, 2));
  wire::Envelope about;
  while (about.attempt != Attempt{2}) daemon.await_message<wire::ProcessExited>(&about);
  EXPECT_FALSE(std::filesystem::exists(made + "/antdt-" + job_ + "-w0.2"));
  kill_agent();
  EXPECT_EQ(rmdir(made.c_str()), 0) << "nothing is left in it";
}

}  // namespace
}  // namespace antdt::antdtd
