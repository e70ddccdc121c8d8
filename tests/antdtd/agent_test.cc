#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "core/os/process.h"
#include "core/wire/admin_messages.h"
#include "core/wire/agent_messages.h"
#include "core/wire/shard_messages.h"
#include "core/wire/worker_messages.h"
#include "tests/antdtd/agent_fixture.h"
#include "tests/antdtd/silent_devices.h"

namespace antdt::antdtd {
namespace {

using ::testing::HasSubstr;

bool is_gone(std::uint32_t pid) { return !process_start_time(static_cast<pid_t>(pid)); }

// ------------------------------------------------------------ starts and ends

TEST_F(AgentTest, AnExitCodeIsReportedWithTheLastLinesUntilItIsSeen) {
  start_agent();
  Peer daemon = attach();
  EXPECT_GT(start(daemon, 0, "echo out; echo why >&2; exit 7"), 0u);
  for (int repeated = 0; repeated < 2; ++repeated) {
    wire::Envelope about;
    const auto exited = daemon.await_message<wire::ProcessExited>(&about);
    EXPECT_EQ(about.worker, (WorkerId{'w', 0}));
    EXPECT_EQ(about.attempt, Attempt{1});
    EXPECT_EQ(exited.code, 7);
    EXPECT_EQ(exited.signal, 0);
    EXPECT_EQ(exited.last_lines, "why\n");
  }
  EXPECT_EQ(log_of("w0.1.out"), "out\n");
  EXPECT_EQ(log_of("w0.1.err"), "why\n");
  EXPECT_TRUE(processes_of(job_).empty());
}

TEST_F(AgentTest, ASignalIsReportedAsASignal) {
  start_agent();
  Peer daemon = attach();
  start(daemon, 0, "kill -9 $$");
  const auto exited = daemon.await_message<wire::ProcessExited>();
  EXPECT_EQ(exited.signal, 9);
  EXPECT_EQ(exited.code, -1);
}

TEST_F(AgentTest, AProgramThatCannotBeExecutedIsReportedWithTheReason) {
  start_agent();
  Peer daemon = attach();
  wire::StartProcess start = request("");
  start.command = {"/no/such/program", "x"};
  daemon.send(start, key(0), 1);
  EXPECT_EQ(daemon.await_message<wire::ProcessExited>().error,
            "cannot execute /no/such/program: No such file or directory");

  start.command = {"/etc/passwd"};
  daemon.send(start, key(1), 1);
  daemon.send(wire::ExitSeen{}, key(0));
  wire::Envelope about;
  wire::ProcessExited second;
  while (about.worker != WorkerId{'w', 1})
    second = daemon.await_message<wire::ProcessExited>(&about);
  EXPECT_EQ(second.error, "cannot execute /etc/passwd: Permission denied");
}

TEST_F(AgentTest, AWorkerWhoseDirectoryIsNotOnTheHostIsReportedWithWhatIsMissing) {
  start_agent();
  Peer daemon = attach();
  wire::StartProcess start = request("true");
  start.working_directory = "/no/such/directory";
  daemon.send(start, key(0), 1);
  EXPECT_EQ(daemon.await_message<wire::ProcessExited>().error,
            "cannot enter the working directory /no/such/directory: No such file or directory; "
            "with [cluster], the directory of job.toml must exist under this path on every host");
}

TEST_F(AgentTest, AWorkerFindsItsEnvironmentAndDirectory) {
  start_agent();
  Peer daemon = attach();
  wire::StartProcess start =
      request("echo $ANTDT_WORKER_ID $ANTDT_ATTEMPT $LR $ANTDT_SOCKET; pwd; exit 0");
  start.env = {{"LR", "0.5"}};
  start.working_directory = path("run");
  daemon.send(start, key(2), 1);
  daemon.await_message<wire::ProcessExited>();
  EXPECT_EQ(log_of("w2.1.out"), "w2 1 0.5 " + path("s/workers.sock") + "\n" + path("run") + "\n");
}

TEST_F(AgentTest, AStopEndsTheWholeTreeWithinTheGraceEvenIfItIgnoresSigterm) {
  start_agent();
  Peer daemon = attach();
  // The worker and its grandchild, which has its own session, both ignore SIGTERM.
  start(daemon, 0,
        "trap '' TERM; setsid sh -c \"trap '' TERM; echo ready; while :; do sleep 100; done\" & "
        "while :; do sleep 100; done");
  ASSERT_TRUE(await([&] { return log_of("w0.1.out") == "ready\n"; }));
  const MonoTime before = std::chrono::steady_clock::now();
  daemon.send(wire::StopProcess{300}, key(0));
  EXPECT_EQ(daemon.await_message<wire::ProcessExited>().signal, 9);
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(300));
  EXPECT_TRUE(processes_of(job_).empty());
}

TEST_F(AgentTest, AWorkerThatEndsInGoodOrderOnSigtermKeepsItsExitCode) {
  start_agent();
  Peer daemon = attach();
  start(daemon, 0, "trap 'exit 75' TERM; echo ready; while :; do sleep 0.02; done");
  ASSERT_TRUE(await([&] { return log_of("w0.1.out") == "ready\n"; }));
  daemon.send(wire::StopProcess{20000}, key(0));
  EXPECT_EQ(daemon.await_message<wire::ProcessExited>().code, 75);
}

TEST_F(AgentTest, ChildrenThatAWorkerLeavesEndWithIt) {
  start_agent();
  Peer daemon = attach();
  start(daemon, 0, "setsid sleep 1000 & setsid sleep 1000 & exit 0");
  EXPECT_EQ(daemon.await_message<wire::ProcessExited>().code, 0);
  EXPECT_TRUE(processes_of(job_).empty());
}

TEST_F(AgentTest, ANewerAttemptStopsTheOlder) {
  start_agent();
  Peer daemon = attach();
  const std::uint32_t first = start(daemon, 0, "sleep 1000");
  const std::uint32_t second = start(daemon, 0, "sleep 1000", 2);
  EXPECT_NE(first, second);
  EXPECT_TRUE(is_gone(first));
  EXPECT_FALSE(is_gone(second));
}

TEST_F(AgentTest, LogsStayWithinTheirBound) {
  start_agent();
  Peer daemon = attach();
  wire::StartProcess start =
      request("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done");
  start.log_bytes = 8000;
  daemon.send(start, key(0), 1);
  EXPECT_EQ(daemon.await_message<wire::ProcessExited>().code, 0);
  const std::string newest = log_of("w0.1.out");
  const std::string older = log_of("w0.1.out.1");
  EXPECT_LE(newest.size() + older.size(), 8000u);
  EXPECT_TRUE(newest.ends_with("line 2999\n"));
  EXPECT_FALSE(older.empty());
}

TEST_F(AgentTest, AStartThatDoesNotFitIsRefused) {
  start_agent();
  Peer daemon = attach();
  wire::StartProcess start = request("true");
  start.cpus = 9;
  daemon.send(start, key(0), 5);
  wire::Envelope about;
  const auto refused = daemon.await_message<wire::Refused>(&about);
  EXPECT_EQ(refused.code, wire::RefusalCode::kFull);
  EXPECT_EQ(about.seq, 5u);
  EXPECT_THAT(refused.reason, HasSubstr("9 cpus"));
}

TEST_F(AgentTest, AWorkerDiesWithItsShim) {
  start_agent();
  Peer daemon = attach();
  const std::uint32_t worker = start(daemon, 0, "setsid sleep 1000 & sleep 1000; :");
  ASSERT_TRUE(await([&] { return processes_of(job_).size() >= 4; }))
      << "the shim, sh and two sleeps";
  const auto stat = read_file(fmt::format("/proc/{}/stat", worker));
  ASSERT_TRUE(stat);
  const pid_t shim = std::stoi(stat->substr(stat->rfind(')') + 4));
  kill(shim, SIGKILL);
  EXPECT_EQ(daemon.await_message<wire::ProcessExited>().signal, 9);
  EXPECT_TRUE(await([&] { return processes_of(job_).empty(); }));
}

// -------------------------------------------------------- the two sides' links

TEST_F(AgentTest, AWorkerIsWelcomedAndMessagesAreRelayedBothWays) {
  start_agent();
  Peer daemon = attach();
  start(daemon, 0, "sleep 1000");
  Peer w0 = worker(0);
  w0.send(wire::Hello{});
  const auto welcome = w0.await_message<wire::WorkerWelcome>();
  EXPECT_EQ(welcome.host, "here");
  EXPECT_EQ(welcome.run_dir, path("run"));
  EXPECT_EQ(welcome.config_json, "{\"schema\":1}");

  w0.send(wire::Fetch{1, 2, 3, {}}, std::nullopt, 17);
  wire::Envelope about;
  EXPECT_EQ(daemon.await_message<wire::Fetch>(&about).place, 2u);
  EXPECT_EQ(about.worker, (WorkerId{'w', 0}));
  EXPECT_EQ(about.seq, 17u);
  daemon.send(wire::Grants{1, wire::GrantStatus::kWait, {}, 50}, key(0), 17);
  EXPECT_EQ(w0.await_message<wire::Grants>(&about).retry_ms, 50u);
  EXPECT_EQ(about.seq, 17u);
}

TEST_F(AgentTest, AStaleAttemptAndAStrangerAreRefused) {
  start_agent();
  Peer daemon = attach();
  start(daemon, 0, "sleep 1000");
  start(daemon, 0, "sleep 1000", 2);
  Peer stale = worker(0, 1);
  stale.send(wire::Fetch{}, std::nullopt, 3);
  wire::Envelope about;
  EXPECT_EQ(stale.await_message<wire::Refused>(&about).code, wire::RefusalCode::kStale);
  EXPECT_EQ(about.seq, 3u);
  Peer stranger = worker(9);
  stranger.send(wire::Hello{});
  EXPECT_EQ(stranger.await_message<wire::Refused>().code, wire::RefusalCode::kUnknown);
}

TEST_F(AgentTest, AWorkerWithNoCommonVersionIsRefused) {
  start_agent();
  Peer daemon = attach();
  start(daemon, 0, "sleep 1000");
  Peer w0 = worker(0);
  w0.send(wire::Hello{99, 100, "from the future"});
  EXPECT_EQ(w0.await_message<wire::Refused>().code, wire::RefusalCode::kVersion);
}

TEST_F(AgentTest, ReportsAreAddedUp) {
  start_agent();
  Peer daemon = attach();
  start(daemon, 0, "sleep 1000");
  Peer w0 = worker(0);
  w0.send(wire::Hello{});
  w0.await_message<wire::WorkerWelcome>();
  constexpr std::uint32_t kReports = 50;
  for (std::uint32_t i = 1; i <= kReports; ++i) {
    wire::Report report;
    report.batches = 1;
    report.samples = 32;
    report.samples_total = 32 * i;
    w0.send(report);
  }
  std::uint32_t batches = 0;
  std::uint64_t total = 0;
  for (int messages = 0; batches < kReports && messages < 50; ++messages) {
    const auto metrics = daemon.await_message<wire::Metrics>();
    batches += metrics.sum.batches;
    total = metrics.sum.samples_total;
  }
  EXPECT_EQ(batches, kReports);
  EXPECT_EQ(total, 32u * kReports);
}

TEST_F(AgentTest, ALowerIncarnationIsRefusedAndTheHigherTakesTheLink) {
  start_agent();
  Peer first = attach(1);
  start(first, 0, "sleep 1000");
  Peer second = attach(2);
  first.send(wire::StopProcess{0}, key(0));
  EXPECT_EQ(first.await_message<wire::Refused>().code, wire::RefusalCode::kUnknown);
  first.send(wire::Hello{});
  first.send(wire::Attach{Incarnation{1}});
  EXPECT_EQ(first.await_message<wire::Refused>().code, wire::RefusalCode::kStale);
  second.await_message<wire::Heartbeat>();
  Peer w0 = worker(0);
  w0.send(wire::Fetch{});
  second.await_message<wire::Fetch>();
}

TEST_F(AgentTest, MessagesForADaemonThatIsAwayReachItsSuccessor) {
  start_agent();
  {
    Peer first = attach(1);
    start(first, 0, "sleep 1000");
  }
  Peer w0 = worker(0);
  w0.send(wire::Hello{});
  w0.await_message<wire::WorkerWelcome>();
  w0.send(wire::Fetch{}, std::nullopt, 4);
  Peer second = attach(2);
  // A message on a link that has just died is lost; a worker that needs an answer asks again.
  w0.send(wire::Fetch{}, std::nullopt, 4);
  wire::Envelope about;
  second.await_message<wire::Fetch>(&about);
  EXPECT_EQ(about.seq, 4u);
}

TEST_F(AgentTest, NoMessageOfManyIsLostInTheRelay) {
  start_agent();
  Peer daemon = attach();
  start(daemon, 0, "sleep 1000");
  Peer w0 = worker(0);
  constexpr std::uint64_t kMessages = 20000;
  constexpr std::uint64_t kWindow = 500;
  const MonoTime before = std::chrono::steady_clock::now();
  std::uint64_t sent = 0;
  for (std::uint64_t got = 0; got < kMessages; ++got) {
    for (; sent < kMessages && sent < got + kWindow; ++sent) {
      w0.send(wire::Fetch{1, sent, 1, {}}, std::nullopt, sent + 1);
    }
    wire::Envelope about;
    ASSERT_EQ(daemon.await_message<wire::Fetch>(&about).place, got);
  }
  const double seconds = to_seconds(std::chrono::steady_clock::now() - before);
  RecordProperty("messages_per_second", static_cast<int>(kMessages / seconds));
}

TEST_F(AgentTest, APortIsReserved) {
  start_agent();
  Peer daemon = attach();
  daemon.send(wire::ReservePort{}, std::nullopt, 8);
  wire::Envelope about;
  EXPECT_GT(daemon.await_message<wire::ReservedPort>(&about).port, 1023u);
  EXPECT_EQ(about.seq, 8u);
}

// ------------------------------------------------------------------- adoption

TEST_F(AgentTest, ANewAgentAdoptsWhatAKilledOneLeft) {
  start_agent();
  std::uint32_t runs = 0;
  {
    Peer daemon = attach();
    runs = start(daemon, 0, "echo up; while [ ! -e go ]; do sleep 0.02; done; exit 7");
    start(daemon, 1, "exit 3");
    wire::Envelope about;
    EXPECT_EQ(daemon.await_message<wire::ProcessExited>(&about).code, 3);
  }
  kill_agent();
  EXPECT_FALSE(is_gone(runs));

  start_agent();
  Peer daemon(context_, path("s/agent.sock"), {job_, {}});
  daemon.send(wire::Heartbeat{});
  EXPECT_EQ(daemon.await_message<wire::Refused>().code, wire::RefusalCode::kUnknown);
  daemon.send(wire::Hello{});
  daemon.send(wire::Attach{Incarnation{2}});
  const auto welcome = daemon.await_message<wire::AgentWelcome>();
  ASSERT_EQ(welcome.running.size(), 1u);
  EXPECT_EQ(welcome.running[0].worker, (WorkerId{'w', 0}));
  EXPECT_EQ(welcome.running[0].pid, runs);
  EXPECT_EQ(welcome.cpus, 7) << "its lease goes on";
  wire::Envelope about;
  EXPECT_EQ(daemon.await_message<wire::ProcessExited>(&about).code, 3) << "nobody had seen it";
  daemon.send(wire::ExitSeen{}, key(1));

  // The worker's first message tells the new agent how to reach it.
  Peer w0 = worker(0);
  w0.send(wire::Fetch{}, std::nullopt, 1);
  daemon.await_message<wire::Fetch>();
  daemon.send(wire::Grants{}, key(0), 1);
  w0.await_message<wire::Grants>();

  daemon.send(wire::StopProcess{0}, key(0));
  EXPECT_EQ(daemon.await_message<wire::ProcessExited>(&about).signal, 9);
  EXPECT_TRUE(processes_of(job_).empty());
}

TEST_F(AgentTest, AnEndThatNoAgentSawIsReportedByTheNext) {
  start_agent();
  std::uint32_t pid = 0;
  {
    Peer daemon = attach();
    pid = start(daemon, 0, "while [ ! -e '" + path("go") + "' ]; do sleep 0.02; done; exit 7");
  }
  kill_agent();
  ASSERT_TRUE(write_file_atomic(path("go"), ""));
  ASSERT_TRUE(await([&] { return is_gone(pid); }));
  start_agent();
  Peer daemon = attach(2);
  EXPECT_EQ(daemon.await_message<wire::ProcessExited>().code, 7);
}

TEST_F(AgentTest, AWorkerThatNoAgentClaimsEnds) {
  start_agent();
  Peer daemon = attach();
  wire::StartProcess start = request("setsid sleep 1000 & sleep 1000");
  start.orphan_timeout_ms = 3000;
  daemon.send(start, key(0), 1);
  daemon.await_message<wire::ProcessStarted>();
  ASSERT_FALSE(processes_of(job_).empty());
  kill_agent();
  EXPECT_TRUE(await([&] { return processes_of(job_).empty(); }));
  EXPECT_THAT(log_of("w0.1.err"), HasSubstr("no agent has claimed"));
}

TEST_F(AgentTest, AJobWhoseDaemonIsSilentIsStopped) {
  start_agent();
  Peer daemon = attach();
  wire::StartProcess start = request("sleep 1000");
  start.orphan_timeout_ms = 2000;  // a busy machine has started it by then
  daemon.send(start, key(0), 1);
  EXPECT_EQ(daemon.await_message<wire::ProcessExited>().signal, 15);
}

TEST_F(AgentTest, AJobThatIsOverIsListedAsSuchUntilItsLastProcessHasEnded) {
  start_agent();
  Peer daemon = attach();
  const auto job_here = [&] {
    daemon.send(wire::JobsRequest{});
    return daemon.await_message<wire::JobsReply>().jobs;
  };
  start(daemon, 0, "trap '' TERM; while :; do sleep 1; done");
  ASSERT_EQ(job_here().size(), 1U);
  EXPECT_FALSE(job_here().front().over);
  daemon.send(wire::Detach{});
  ASSERT_EQ(job_here().size(), 1U);
  EXPECT_TRUE(job_here().front().over);
  EXPECT_EQ(job_here().front().processes, 1U);
  daemon.send(wire::RelayedRequest{"status-request", "", ""});
  EXPECT_THAT(daemon.await_message<wire::Refused>().reason,
              HasSubstr(job_ + " has ended; its last processes here are being ended"));
  EXPECT_TRUE(await([&] { return job_here().empty(); }));
}

TEST_F(AgentTest, AnEmptyDirectoryOfAJobIsRemoved) {
  const std::string empty = path("state/jobs/nothing");
  ASSERT_TRUE(make_directories(empty));
  start_agent();
  Peer daemon = attach();
  EXPECT_FALSE(std::filesystem::exists(empty));
  EXPECT_TRUE(std::filesystem::exists(path("state/jobs/" + job_)));
}

TEST_F(AgentTest, ASecondAgentOnTheSameStateIsRefused) {
  start_agent();
  { const Peer daemon = attach(); }
  const pid_t first = agent_;
  start_agent();
  EXPECT_EQ(WEXITSTATUS(wait_for_agent_end()), 1);
  agent_ = first;
  agent_status_.reset();
  const Peer daemon = attach(2);
}

// ------------------------------------------------- a private agent and its job

TEST_F(AgentTest, AJobDaemonThatDiesIsStartedAgainAndTheAgentEndsWithTheJob) {
  start_agent();
  Peer launcher(context_, path("s/agent.sock"), {job_, {}});
  // The daemon dies by a signal twice; the third one reports that the job is over.
  const std::string script = "echo x >> '" + path("starts") + "'; n=$(wc -l < '" + path("starts") +
                             "'); if [ $n -lt 3 ]; then kill -9 $$; fi; while [ ! -e '" +
                             path("go") + "' ]; do sleep 0.02; done; exit 75";
  launcher.send(wire::StartJob{path("run"), {"/bin/sh", "-c", script}}, std::nullopt, 1);
  EXPECT_GT(launcher.await_message<wire::JobStarted>().pid, 0u);
  ASSERT_TRUE(await([&] { return read_file(path("starts")).value_or("") == "x\nx\nx\n"; }));
  Peer daemon = attach(3);
  start(daemon, 0, "sleep 1000");
  ASSERT_TRUE(write_file_atomic(path("go"), ""));
  EXPECT_EQ(wait_for_agent_end(), 0);
  EXPECT_TRUE(processes_of(job_).empty());
  EXPECT_FALSE(std::filesystem::exists(path("s")));
  EXPECT_FALSE(std::filesystem::exists(path("state")));
}

TEST_F(AgentTest, AJobDaemonThatCannotBeExecutedIsReportedToTheLauncher) {
  start_agent();
  Peer launcher(context_, path("s/agent.sock"), {job_, {}});
  launcher.send(wire::StartJob{path("run"), {"/no/such/jobd"}}, std::nullopt, 1);
  EXPECT_THAT(launcher.await_message<wire::Refused>().reason,
              HasSubstr("cannot execute /no/such/jobd"));
  EXPECT_EQ(wait_for_agent_end(), 0);
  EXPECT_EQ(read_file(path("run/given-up")).value_or(""),
            "its job daemon cannot be started: cannot execute /no/such/jobd: No such file or "
            "directory\n");
}

TEST_F(AgentTest, AJobDaemonThatDiesAgainAndAgainIsStartedAgainAndTheLogCounts) {
  ASSERT_TRUE(write_file_atomic(path("run/given-up"), "of an earlier start\n"));
  start_agent();
  Peer launcher(context_, path("s/agent.sock"), {job_, {}});
  // The fourth daemon lives, and ends normally.
  const std::string script = "echo x >> '" + path("tries") + "'; [ $(wc -l < '" + path("tries") +
                             "') -lt 4 ] && kill -11 $$; exit 0";
  launcher.send(wire::StartJob{path("run"), {"/bin/sh", "-c", script}}, std::nullopt, 1);
  EXPECT_EQ(wait_for_agent_end(), 0);
  EXPECT_EQ(read_file(path("tries")).value_or(""), "x\nx\nx\nx\n");
  EXPECT_THAT(read_file(path("run/agent.log")).value_or(""), HasSubstr("died 2 times in a row"));
  EXPECT_FALSE(std::filesystem::exists(path("run/given-up")));
}

TEST_F(AgentTest, AJobDaemonOutlivesItsAgentAndIsAdopted) {
  start_agent();
  std::uint32_t pid = 0;
  const std::string script = "while [ ! -e '" + path("go") + "' ]; do sleep 0.02; done; exit 0";
  {
    Peer launcher(context_, path("s/agent.sock"), {job_, {}});
    launcher.send(wire::StartJob{path("run"), {"/bin/sh", "-c", script}}, std::nullopt, 1);
    pid = launcher.await_message<wire::JobStarted>().pid;
  }
  kill_agent();
  EXPECT_FALSE(is_gone(pid));
  start_agent();
  Peer launcher(context_, path("s/agent.sock"), {job_, {}});
  launcher.send(wire::StartJob{path("run"), {"/bin/sh", "-c", script}}, std::nullopt, 1);
  EXPECT_EQ(launcher.await_message<wire::JobStarted>().pid, pid);
  ASSERT_TRUE(write_file_atomic(path("go"), ""));
  EXPECT_EQ(wait_for_agent_end(), 0);
}

// ----------------------------------------------------------------- accelerators

TEST_F(AgentTest, ADeviceThatDoesNotAnswerDoesNotHoldItsEndUp) {
  std::filesystem::create_symlink(ANTDT_FAKE_NVML, path("libnvidia-ml.so.1"));
  SilentDevices silent(path("devices"));
  setenv("LD_LIBRARY_PATH", dir_.path().c_str(), 1);
  setenv("FAKE_NVML", path("devices").c_str(), 1);
  start_agent({"--nvml-patience", "0.1"});
  unsetenv("LD_LIBRARY_PATH");
  unsetenv("FAKE_NVML");
  ASSERT_TRUE(silent.await_call());
  kill(agent_, SIGTERM);
  EXPECT_EQ(wait_for_agent_end(), 0);
  EXPECT_THAT(read_file(path("agent.log")).value_or(""), HasSubstr("a call to NVML is held up"));
}

}  // namespace
}  // namespace antdt::antdtd
