#include "tests/antdtd/agent_fixture.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "antdtd/shim/cgroup.h"
#include "core/os/process.h"
#include "core/wire/agent_messages.h"

namespace antdt::antdtd {

bool await(const std::function<bool()>& condition, Duration patience) {
  const MonoTime deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::vector<pid_t> processes_of(const std::string& job) {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc()) continue;
    const auto environment = read_file(it->path().string() + "/environ");
    if (environment && environment->find("ANTDT_JOB_ID=" + job) != std::string::npos) {
      found.push_back(pid);
    }
  }
  return found;
}

std::string make_test_cgroup() {
  const char* named = std::getenv("ANTDT_TEST_CGROUP");
  for (const std::string parent :
       {named == nullptr ? "" : named, "/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    const std::string group = fmt::format("{}/antdt-test-{}", parent, getpid());
    if (parent.empty() || mkdir(group.c_str(), 0755) != 0) continue;
    if (CgroupRoot::open(group)) return group;
    rmdir(group.c_str());
  }
  return {};
}

// ----------------------------------------------------------------------- Peer

Peer::Peer(transport::Context& context, const std::string& socket, ProcessKey key)
    : socket_(std::move(*transport::Socket::connect_ipc(context, socket))), key_(std::move(key)) {}

wire::Envelope Peer::envelope(const ProcessKey& about, std::uint64_t seq) const {
  wire::Envelope envelope;
  envelope.job = about.job;
  envelope.worker = about.member.worker;
  envelope.attempt = about.member.attempt;
  envelope.seq = seq;
  return envelope;
}

void Peer::send_packet(const wire::Packet& packet) {
  ASSERT_TRUE(await([&] { return socket_.send(packet) == transport::SendOutcome::kSent; }));
}

std::optional<wire::Packet> Peer::await_kind(const std::string& kind, wire::Envelope* envelope) {
  const MonoTime deadline = std::chrono::steady_clock::now() + kPatience;
  while (socket_.wait_readable(deadline - std::chrono::steady_clock::now())) {
    auto packet = socket_.receive();
    if (!packet) continue;
    const auto opened = wire::open_envelope(*packet);
    if (!opened || opened->kind != kind) continue;
    if (envelope != nullptr) *envelope = *opened;
    return packet;
  }
  ADD_FAILURE() << "no '" << kind << "' message came";
  return std::nullopt;
}

// ------------------------------------------------------------------ AgentTest

AgentTest::AgentTest() : job_("test-" + new_ulid()) {
  ignore_sigpipe();
  EXPECT_TRUE(make_directories(path("run")));
}

// Ends every process that a test has started.
AgentTest::~AgentTest() {
  if (HasFailure()) {
    fmt::print(stderr, "--- agent log\n{}---\n", read_file(path("agent.log")).value_or(""));
  }
  // Without their directories the shims start no other agent; a successor of an earlier agent may
  // already run.
  std::filesystem::remove_all(path("state/jobs"));
  if (agent_ != 0 && !agent_ended()) kill_agent();
  if (const auto other = FileLock::owner(path("state/lock"))) kill(*other, SIGKILL);
  for (const pid_t pid : processes_of(job_)) kill(pid, SIGKILL);
}

// Most tests examine what happens while no agent runs; only those about the successor start one
// that has it.
void AgentTest::start_agent(const std::vector<std::string>& more_flags) {
  std::vector<std::string> flags = more_flags;
  flags.emplace_back("--no-successor");
  start_kept_agent(flags);
}

void AgentTest::start_kept_agent(const std::vector<std::string>& more_flags) {
  std::vector<std::string> command = {std::string(ANTDT_BIN) + "/antdtd",
                                      "--private",
                                      "--socket-dir",
                                      path("s"),
                                      "--state-dir",
                                      path("state"),
                                      "--log-file",
                                      path("agent.log"),
                                      "--idle-exit",
                                      "600",
                                      "--cpus",
                                      "8",
                                      "--host-name",
                                      "here"};
  command.insert(command.end(), more_flags.begin(), more_flags.end());
  std::vector<char*> argv;
  for (const std::string& part : command) argv.push_back(const_cast<char*>(part.c_str()));
  argv.push_back(nullptr);
  agent_status_.reset();
  ASSERT_EQ(posix_spawn(&agent_, argv[0], nullptr, nullptr, argv.data(), environ), 0);
}

void AgentTest::kill_agent() {
  kill(agent_, SIGKILL);
  [[maybe_unused]] const int status = wait_for_agent_end();
}

bool AgentTest::agent_ended() {
  int status = 0;
  if (!agent_status_ && waitpid(agent_, &status, WNOHANG) == agent_) agent_status_ = status;
  return agent_status_.has_value();
}

int AgentTest::wait_for_agent_end() {
  EXPECT_TRUE(await([this] { return agent_ended(); }));
  return agent_status_.value_or(-1);
}

ProcessKey AgentTest::key(std::uint32_t index, std::uint32_t attempt) const {
  return {job_, {{'w', index}, Attempt{attempt}}};
}

Peer AgentTest::attach(std::uint64_t incarnation) {
  Peer daemon(context_, path("s/agent.sock"), {job_, {}});
  daemon.send(wire::Hello{});
  daemon.send(wire::Attach{Incarnation{incarnation}});
  EXPECT_EQ(daemon.await_message<wire::AgentWelcome>().version, wire::kMaxVersion);
  return daemon;
}

Peer AgentTest::worker(std::uint32_t index, std::uint32_t attempt) {
  return Peer(context_, path("s/workers.sock"), key(index, attempt));
}

wire::StartProcess AgentTest::request(const std::string& script) const {
  wire::StartProcess start;
  start.role = "worker";
  start.command = {"/bin/sh", "-c", script};
  start.run_dir = path("run");
  start.config_json = "{\"schema\":1}";
  start.cpus = 1;
  start.orphan_timeout_ms = 60000;
  start.report_ms = 100;
  return start;
}

std::uint32_t AgentTest::start(Peer& daemon, std::uint32_t index, const std::string& script,
                               std::uint32_t attempt) {
  daemon.send(request(script), key(index, attempt), 1);
  wire::Envelope envelope;
  const auto started = daemon.await_message<wire::ProcessStarted>(&envelope);
  EXPECT_EQ(envelope.worker, (WorkerId{'w', index}));
  return started.pid;
}

std::string AgentTest::log_of(const std::string& name) const {
  return read_file(path("run/logs/" + name)).value_or("");
}

}  // namespace antdt::antdtd
