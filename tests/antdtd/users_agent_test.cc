// A real agent of root that serves users by their keys; the test has two users' keys.
#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "antdtd/shim/shim_files.h"
#include "core/os/process.h"
#include "core/os/user.h"
#include "core/transport/keys.h"
#include "core/wire/admin_messages.h"
#include "core/wire/agent_messages.h"
#include "core/wire/operator_messages.h"
#include "tests/antdtd/agent_fixture.h"

namespace antdt::antdtd {
namespace {

using testing::HasSubstr;

class UsersAgentTest : public AgentTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only an agent of root serves several users";
    const Result<UserIdentity> nobody = find_user("nobody");
    if (!nobody) GTEST_SKIP() << "this system has no user nobody";
    nobody_ = *nobody;
    ASSERT_EQ(chmod(dir_.path().c_str(), 0711), 0);
    agent_key_ = transport::generate_key_pair(path("keys"), "agent").value();
    for (const char* user : {"root", "nobody"}) {
      keys_[user] = transport::generate_key_pair(path(std::string("of-") + user), "job").value();
      authorize(user);
    }
    // The logs go to the run directory of the user who starts the job.
    ASSERT_EQ(chown(path("run").c_str(), nobody_.uid, nobody_.gid), 0);
    ASSERT_EQ(chmod(path("run").c_str(), 0700), 0);
    serve("127.0.0.1:0");
  }

  void authorize(const std::string& user) {
    ASSERT_TRUE(make_directories(path("keys/authorized"), 0700));
    ASSERT_TRUE(
        write_file_atomic(authorized(user), read_file(path("of-" + user + "/job.pub")).value()));
  }
  [[nodiscard]] std::string authorized(const std::string& user) const {
    return path("keys/authorized/" + user + ".pub");
  }

  void serve(const std::string& listen, const std::vector<std::string>& more_flags = {}) {
    const std::string program = programs_ + "/antdtd";
    std::vector<std::string> command = {
        program,           "--listen",  listen,        "--keys",      path("keys"),
        "--socket-dir",    path("s"),   "--state-dir", path("state"), "--log-file",
        path("agent.log"), "--address", "127.0.0.1",   "--cpus",      "8",
        "--host-name",     "here",      "--allow-root"};
    command.insert(command.end(), more_flags.begin(), more_flags.end());
    std::vector<char*> argv;
    for (const std::string& part : command) argv.push_back(const_cast<char*>(part.c_str()));
    argv.push_back(nullptr);
    agent_status_.reset();
    listening_.clear();
    unlink(path("agent.log").c_str());
    ASSERT_EQ(posix_spawn(&agent_, argv[0], nullptr, nullptr, argv.data(), environ), 0);
    const std::string words = "listening on tcp://";
    ASSERT_TRUE(await([&] {
      const std::string log = read_file(path("agent.log")).value_or("");
      const std::size_t at = log.find(words);
      if (at == std::string::npos) return false;
      listening_ = log.substr(at + words.size(), log.find(',', at) - at - words.size());
      return true;
    }));
  }

  // A job daemon with the key of this user.
  [[nodiscard]] Peer daemon_of(const std::string& user) {
    return Peer(std::move(*transport::Socket::connect_tcp(context_, listening_, keys_[user],
                                                          agent_key_.public_z85)),
                {job_, {}});
  }
  [[nodiscard]] Peer attached(const std::string& user, std::uint64_t incarnation = 1) {
    Peer daemon = daemon_of(user);
    daemon.send(wire::Hello{});
    daemon.send(wire::Attach{Incarnation{incarnation}});
    EXPECT_EQ(daemon.await_message<wire::AgentWelcome>().user, user);
    return daemon;
  }
  [[nodiscard]] uid_t owner_of(const std::string& name) const {
    struct stat info {};
    return lstat(path(name).c_str(), &info) == 0 ? info.st_uid : static_cast<uid_t>(-1);
  }

  template <class Request>
  [[nodiscard]] static wire::RelayedRequest relayed(const Request& request) {
    return {std::string(Request::kKind), wire::encode(request), ""};
  }

  // From now on, agents have a shim that is stopped as soon as it is to end what a killed shim
  // left, as if its user had done that.
  void use_stopped_helpers() {
    const std::string real = ANTDT_BIN;
    programs_ = path("bin");
    ASSERT_TRUE(make_directories(programs_));
    ASSERT_EQ(chmod(programs_.c_str(), 0755), 0);
    std::filesystem::copy_file(real + "/antdtd", programs_ + "/antdtd");
    ASSERT_TRUE(write_file_atomic(programs_ + "/antdt-shim",
                                  "#!/bin/sh\n[ \"$1\" = --kill-marked ] && kill -STOP $$\nexec " +
                                      real + "/antdt-shim \"$@\"\n",
                                  0755));
  }
  // Workers w0, w1, ... that lease no CPU, so that there may be many.
  void start_many(Peer& daemon) {
    wire::StartProcess wanted = request("sleep 1000");
    wanted.cpus = 0;
    for (std::uint32_t n = 0; n < kMany; ++n) {
      daemon.send(wanted, key(n), 1);
      ASSERT_GT(daemon.await_message<wire::ProcessStarted>().pid, 0U);
    }
  }
  void kill_shims() {
    for (std::uint32_t n = 0; n < kMany; ++n) {
      const auto text = read_file(path(fmt::format("state/jobs/{}/w{}.1/own/pid", job_, n)));
      ASSERT_TRUE(text) << text.error().message;
      const auto pids = parse_pid_file(*text);
      ASSERT_TRUE(pids);
      kill(pids->shim.pid, SIGKILL);
    }
  }
  void await_kills_of_all(Peer& daemon) {
    std::set<WorkerId> ended;
    while (ended.size() < kMany) {
      wire::Envelope about;
      ASSERT_EQ(daemon.await_message<wire::ProcessExited>(&about).signal, SIGKILL);
      ended.insert(about.worker);
      daemon.send(wire::ExitSeen{}, ProcessKey{job_, {about.worker, about.attempt}});
    }
  }
  // The job of another user, its worker, and when the agent claimed that last.
  [[nodiscard]] std::string other_job() const { return job_ + "-of-root"; }
  [[nodiscard]] wire::StartProcess request_of_other() const {
    wire::StartProcess wanted = request("sleep 1000");
    wanted.run_dir = path("run-of-root");
    return wanted;
  }
  [[nodiscard]] Peer daemon_of_other() {
    return Peer(std::move(*transport::Socket::connect_tcp(context_, listening_, keys_["root"],
                                                          agent_key_.public_z85)),
                {other_job(), {}});
  }
  [[nodiscard]] std::pair<time_t, long> other_claimed() const {
    struct stat info {};
    const std::string claim = path("state/jobs/" + other_job() + "/w0.1/claim");
    EXPECT_EQ(stat(claim.c_str(), &info), 0) << claim;
    return {info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
  }

  // To wait for the helpers of so many, one after the other, takes 24 s.
  static constexpr std::uint32_t kMany = 12;
  static constexpr double kSoon = 12;
  std::string programs_ = ANTDT_BIN;
  UserIdentity nobody_;
  transport::KeyPair agent_key_;
  std::map<std::string, transport::KeyPair> keys_;
  std::string listening_;
};

TEST_F(UsersAgentTest, AProcessAndItsFilesAreThoseOfTheUserWhoseKeyTheJobCameWith) {
  Peer daemon = attached("nobody");
  EXPECT_GT(start(daemon, 0, "id -un; exit 3"), 0U);
  EXPECT_EQ(daemon.await_message<wire::ProcessExited>().code, 3);
  EXPECT_EQ(log_of("w0.1.out"), "nobody\n");
  EXPECT_EQ(owner_of("run/logs/w0.1.out"), nobody_.uid);
  EXPECT_EQ(owner_of("state/jobs/" + job_ + "/w0.1/start"), 0U);
  EXPECT_EQ(owner_of("state/jobs/" + job_ + "/w0.1/own/exit"), nobody_.uid);
}

TEST_F(UsersAgentTest, AJobOfOneUserIsNotAttachedToWithTheKeyOfAnother) {
  Peer daemon = attached("nobody");
  Peer other = daemon_of("root");
  other.send(wire::Hello{});
  other.send(wire::Attach{Incarnation{2}});
  EXPECT_THAT(other.await_message<wire::Refused>().reason,
              HasSubstr("belongs to the user 'nobody'"));
  other.send(wire::StopProcess{0}, key(0));
  EXPECT_EQ(other.await_message<wire::Refused>().code, wire::RefusalCode::kUnknown);
}

TEST_F(UsersAgentTest, OnlyAnAdministratorCanStopTheJobOfAnotherUser) {
  Peer daemon = attached("root");
  Peer other = daemon_of("nobody");
  wire::RelayedRequest stop = relayed(wire::StopJob{});
  stop.who = "root";  // the agent must not believe it
  other.send(stop);
  EXPECT_THAT(other.await_message<wire::Refused>().reason, HasSubstr("antdt-admin"));
  other.send(relayed(wire::ResizeJob{}));
  EXPECT_THAT(other.await_message<wire::Refused>().reason,
              HasSubstr("only its own user may send 'resize'"));
  other.send(wire::JobsRequest{});
  EXPECT_TRUE(other.await_message<wire::JobsReply>().jobs.empty());
}

TEST_F(UsersAgentTest, ARequestReachesTheJobsDaemonWithTheNameOfTheKeyAndItsReplyComesBack) {
  Peer daemon = attached("nobody");
  Peer own = daemon_of("nobody");
  wire::EvictWorkers evict;
  evict.target = "w0";
  wire::RelayedRequest request = relayed(evict);
  request.who = "somebody else";
  own.send(request, std::nullopt, 7);
  wire::Envelope asked;
  const auto passed_on = daemon.await_message<wire::RelayedRequest>(&asked);
  EXPECT_EQ(passed_on.kind, wire::EvictWorkers::kKind);
  EXPECT_EQ(wire::decode<wire::EvictWorkers>(passed_on.body)->target, "w0");
  EXPECT_EQ(passed_on.who, "nobody@here");
  const wire::Refused refused{wire::RefusalCode::kInvalid, "it has left"};
  daemon.send(wire::RelayedReply{std::string(wire::Refused::kKind), wire::encode(refused)},
              std::nullopt, asked.seq);
  wire::Envelope answered;
  EXPECT_EQ(own.await_message<wire::Refused>(&answered).reason, "it has left");
  EXPECT_EQ(answered.seq, 7U);
}

TEST_F(UsersAgentTest, ARequestForAJobWithoutADaemonHereIsRefused) {
  Peer own = daemon_of("root");
  own.send(relayed(wire::StatusRequest{}));
  EXPECT_EQ(own.await_message<wire::Refused>().code, wire::RefusalCode::kUnknown);
}

// After the agent was started again, for example.
TEST_F(UsersAgentTest, AnOrderForAJobWhoseDaemonIsAwayIsToBeGivenAgain) {
  Peer daemon = attached("nobody");
  EXPECT_GT(start(daemon, 0, "sleep 1000"), 0U);
  kill_agent();
  serve(listening_);
  Peer own = daemon_of("nobody");
  own.send(relayed(wire::StopJob{}));
  EXPECT_EQ(own.await_message<wire::Refused>().code, wire::RefusalCode::kBusy);
  Peer back = attached("nobody", 2);
  own.send(relayed(wire::StopJob{}));
  EXPECT_EQ(back.await_message<wire::RelayedRequest>().kind, wire::StopJob::kKind);
}

TEST_F(UsersAgentTest, ADrainedHostStartsNothingTellsEveryJobAndIsDrainedUnderTheNextAgent) {
  Peer daemon = attached("nobody");
  EXPECT_GT(start(daemon, 0, "sleep 1000"), 0U);
  Peer other = daemon_of("nobody");
  other.send(wire::DrainHost{true, "mine"});
  EXPECT_THAT(other.await_message<wire::Refused>().reason, HasSubstr("antdt-admin"));

  Peer own = daemon_of("root");
  own.send(wire::DrainHost{true, "new memory"}, std::nullopt, 7);
  wire::Envelope answered;
  own.await_message<wire::Done>(&answered);
  EXPECT_EQ(answered.seq, 7U);
  const auto told = daemon.await_message<wire::HostDrain>();
  ASSERT_TRUE(told.drain);
  EXPECT_EQ(wire::to_text(*told.drain), "by root@here: new memory");
  daemon.send(request("true"), key(1));
  EXPECT_EQ(daemon.await_message<wire::Refused>().reason,
            "host here is drained by root@here: new memory");
  daemon.send(request("sleep 1000"), key(0));  // it runs already
  EXPECT_GT(daemon.await_message<wire::ProcessStarted>().pid, 0U);

  kill_agent();
  serve(listening_);
  Peer again = daemon_of("nobody");
  again.send(wire::Hello{});
  again.send(wire::Attach{Incarnation{2}});
  EXPECT_TRUE(again.await_message<wire::AgentWelcome>().drain.has_value());
  Peer ends = daemon_of("root");
  ends.send(wire::DrainHost{false, ""});
  ends.await_message<wire::Done>();
  EXPECT_FALSE(again.await_message<wire::HostDrain>().drain.has_value());
  EXPECT_GT(start(again, 1, "true"), 0U);
}

TEST_F(UsersAgentTest, AKeyThatIsRemovedLosesItsOpenLinkWithinASecond) {
  Peer daemon = attached("nobody");
  EXPECT_GT(start(daemon, 0, "sleep 1000"), 0U);
  unlink(authorized("nobody").c_str());
  const MonoTime removed = std::chrono::steady_clock::now();
  const auto refused = daemon.await_message<wire::Refused>();
  EXPECT_LT(to_seconds(std::chrono::steady_clock::now() - removed), 1.0);
  EXPECT_EQ(refused.code, wire::RefusalCode::kUser);
  EXPECT_THAT(refused.reason, HasSubstr("or cannot be read (the agent's log then says why)"));
  // The agent ignores the stop, and the worker goes on while its daemon is away.
  daemon.send(wire::StopProcess{0}, key(0));
  EXPECT_EQ(daemon.await_message<wire::Refused>().code, wire::RefusalCode::kUser);
  EXPECT_FALSE(processes_of(job_).empty());
  // No further message comes, not even the heartbeat of each second.
  EXPECT_FALSE(daemon.socket().wait_readable(std::chrono::milliseconds(1500)));
  authorize("nobody");
  Peer again = daemon_of("nobody");
  const bool served = await([&] {
    again.send(wire::Hello{});
    again.send(wire::Attach{Incarnation{2}});
    if (!again.socket().wait_readable(std::chrono::milliseconds(200))) return false;
    const auto packet = again.socket().receive();
    return packet && wire::open_reply<wire::AgentWelcome>(*packet).has_value();
  });
  EXPECT_TRUE(served);
  again.send(wire::StopProcess{0}, key(0));
  again.await_message<wire::ProcessExited>();
}

TEST_F(UsersAgentTest, TheNextAgentAdoptsAndEndsTheProcessesOfAUser) {
  Peer daemon = attached("nobody");
  const std::uint32_t pid = start(daemon, 0, "trap 'exit 5' TERM; while :; do sleep 0.05; done");
  ASSERT_GT(pid, 0U);
  kill_agent();
  serve(listening_);
  Peer again = attached("nobody", 2);
  EXPECT_TRUE(process_start_time(static_cast<pid_t>(pid))) << "it goes on";
  again.send(wire::StopProcess{10000}, key(0));
  EXPECT_EQ(again.await_message<wire::ProcessExited>().code, 5);
}

// Its directories may be in /tmp, as those of an agent in a Slurm allocation of root are.
TEST_F(UsersAgentTest, TheAgentsOwnFilesAreTouchedSoThatNoCleanerRemovesThem) {
  Peer daemon = attached("nobody");
  ASSERT_GT(start(daemon, 0, "sleep 1000"), 0U);
  kill_agent();
  const std::string start_file = path("state/jobs/" + job_ + "/w0.1/start");
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 30);
  std::filesystem::last_write_time(start_file, long_ago);
  serve(listening_);
  EXPECT_TRUE(await([&] {
    return std::filesystem::last_write_time(start_file) > long_ago + std::chrono::hours(1);
  }));
}

TEST_F(UsersAgentTest, ProcessesThatTheKilledShimOfAUserLeavesAreEnded) {
  Peer daemon = attached("nobody");
  const std::uint32_t pid = start(daemon, 0, "setsid sleep 1000 & sleep 1000");
  ASSERT_GT(pid, 0U);
  ASSERT_TRUE(await([&] { return processes_of(job_).size() >= 3; }));
  const auto text = read_file(path("state/jobs/" + job_ + "/w0.1/own/pid"));
  ASSERT_TRUE(text);
  const auto pids = parse_pid_file(*text);
  ASSERT_TRUE(pids);
  kill(pids->shim.pid, SIGKILL);
  EXPECT_EQ(daemon.await_message<wire::ProcessExited>().signal, SIGKILL);
  EXPECT_TRUE(await([&] { return processes_of(job_).empty(); }));
}

TEST_F(UsersAgentTest, AUserWhoStopsWhatEndsProcessesOfKilledShimsHoldsUpNoOtherUsersJob) {
  kill_agent();
  use_stopped_helpers();
  serve(listening_);
  Peer other = daemon_of_other();
  other.send(wire::Hello{});
  other.send(wire::Attach{Incarnation{1}});
  other.await_message<wire::AgentWelcome>();
  const ProcessKey worker{other_job(), {{'w', 0}, Attempt{1}}};
  other.send(request_of_other(), worker, 1);
  ASSERT_GT(other.await_message<wire::ProcessStarted>().pid, 0U);
  Peer daemon = attached("nobody");
  start_many(daemon);

  const MonoTime killed = std::chrono::steady_clock::now();
  kill_shims();
  const auto claimed = other_claimed();
  EXPECT_TRUE(await([&] { return other_claimed() != claimed; }));
  other.send(request_of_other(), worker, 2);  // it runs already
  other.await_message<wire::ProcessStarted>();
  other.await_message<wire::Heartbeat>();
  EXPECT_LT(to_seconds(std::chrono::steady_clock::now() - killed), kSoon);
  await_kills_of_all(daemon);
}

TEST_F(UsersAgentTest, NorDoesThatHoldUpTheNextAgentWhichReportsTheirEnds) {
  kill_agent();
  use_stopped_helpers();
  serve(listening_);
  {
    Peer daemon = attached("nobody");
    start_many(daemon);
  }
  kill_agent();  // so that it does not see the end of the shims
  kill_shims();
  const MonoTime began = std::chrono::steady_clock::now();
  serve(listening_);
  Peer other = daemon_of_other();
  other.send(wire::Hello{});
  other.send(wire::Attach{Incarnation{1}});
  other.await_message<wire::AgentWelcome>();
  EXPECT_LT(to_seconds(std::chrono::steady_clock::now() - began), kSoon);
  Peer daemon = attached("nobody", 2);
  await_kills_of_all(daemon);
  // And the one after it knows that, too.
  kill_agent();
  serve(listening_);
  Peer again = attached("nobody", 3);
  await_kills_of_all(again);
}

TEST_F(UsersAgentTest, AWorkerOfAUserRunsInACgroupOfItsOwnThatGoesWithIt) {
  const std::string made = make_test_cgroup();
  if (made.empty()) GTEST_SKIP() << "no cgroup (version 2) can be made here";
  kill_agent();
  serve(listening_, {"--cgroup", made});
  Peer daemon = attached("nobody");
  EXPECT_GT(start(daemon, 0, "cat /proc/self/cgroup; setsid sleep 1000 & sleep 1000"), 0U);
  const std::string group = made + "/antdt-" + job_ + "-w0.1";
  EXPECT_TRUE(await([&] { return log_of("w0.1.out").find("antdt-" + job_) != std::string::npos; }))
      << log_of("w0.1.err");
  EXPECT_EQ(access(group.c_str(), F_OK), 0);
  daemon.send(wire::StopProcess{0}, key(0));
  daemon.await_message<wire::ProcessExited>();
  EXPECT_NE(access(group.c_str(), F_OK), 0);
  EXPECT_TRUE(await([&] { return processes_of(job_).empty(); }));
  kill_agent();
  EXPECT_EQ(rmdir(made.c_str()), 0) << "nothing is left in it";
}

// A user's own shim would never send these messages: the agent does not believe them.
TEST_F(UsersAgentTest, AUserCannotMakeTheAgentReadOrSignalThingsOfOthers) {
  const pid_t ours = getpid();
  Peer daemon = attached("nobody");
  const std::string own = path("state/jobs/" + job_ + "/w0.1/own");
  ASSERT_TRUE(write_file_atomic(path("secret"), "code 77\nsecret of root", 0600));
  const std::string lie = fmt::format(
      "cd {0}; until [ -e go ]; do sleep 0.01; done; rm -f exit pid && ln -s {1} exit && printf "
      "'shim {2} {3}\\nworker {2} "
      "{3}\\n' > pid; kill -9 $PPID; sleep 1000",
      own, path("secret"), ours, process_start_time(ours).value());
  EXPECT_GT(start(daemon, 0, lie), 0U);
  ASSERT_TRUE(write_file_atomic(own + "/go", ""));  // the agent has seen the shim
  const auto exited = daemon.await_message<wire::ProcessExited>();
  EXPECT_NE(exited.code, 77);
  EXPECT_THAT(exited.last_lines, testing::Not(HasSubstr("secret")));
  EXPECT_TRUE(process_start_time(ours)) << "and this process got no signal";
}

}  // namespace
}  // namespace antdt::antdtd
