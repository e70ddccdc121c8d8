#include "antdtd/processes/process_runner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <utility>

#include "antdtd/devices/visible_devices.h"
#include "antdtd/processes/shim_launcher.h"
#include "antdtd/shim/out_of_memory.h"
#include "antdtd/shim/process_tree.h"
#include "antdtd/shim/shim_files.h"
#include "antdtd/users/user_files.h"
#include "core/log/log.h"
#include "core/os/pipe.h"
#include "core/os/process.h"
#include "core/os/runtime_dir.h"
#include "core/os/spawn.h"

namespace antdt::antdtd {
namespace {

constexpr Duration kLookAgain = std::chrono::milliseconds(50);
// The shims of workers start the agent only if the job daemon's shim did not.
constexpr Duration kWorkersPatience = std::chrono::seconds(3);
constexpr std::size_t kLargestShimFile = std::size_t{64} * 1024;

bool is_job_daemon(const ProcessKey& key) { return key.member.worker == kJobDaemon; }

std::string log_prefix(const ProcessKey& key, const wire::StartProcess& start) {
  const std::string logs = start.run_dir + "/logs/";
  if (is_job_daemon(key)) return fmt::format("{}jobd.{}", logs, key.member.attempt);
  return logs + file_name(key.member);
}

// The agent's own environment, with the number of this daemon: if a daemon that follows another one
// fails, the failure is not the user's (cmd/antdt-jobd/main.cc). The names differ from those of
// workers' marks, because processes with such marks are found and killed.
std::vector<std::string> job_daemon_environment(std::vector<std::string> environment,
                                                const ProcessKey& key) {
  environment.push_back(fmt::format("ANTDT_JOBD_ATTEMPT={}", key.member.attempt));
  return environment;
}

std::string in_ms(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

void add_successor(std::vector<std::string>& arguments, const ProcessKey& key,
                   const std::string& run_dir, const ProcessRunner::Settings& settings) {
  if (settings.successor.empty()) return;
  const Duration patience = is_job_daemon(key) ? Duration::zero() : kWorkersPatience;
  arguments.insert(arguments.end(),
                   {"--agent-lock", settings.agent_lock, "--agent-log", run_dir + "/agent.log",
                    "--agent-patience-ms", in_ms(patience), "--agent-hung-ms",
                    in_ms(settings.agent_hung_after + patience)});
  for (const std::string& argument : settings.successor) {
    arguments.insert(arguments.end(), {"--agent-argument", argument});
  }
}

std::vector<std::string> shim_arguments(const ProcessKey& key, const wire::StartProcess& start,
                                        const std::string& directory, const std::string& cgroup,
                                        const ProcessRunner::Settings& settings) {
  std::vector<std::string> arguments = {
      "--process-dir",       directory,
      "--log-prefix",        log_prefix(key, start),
      "--log-bytes",         std::to_string(start.log_bytes),
      "--orphan-timeout-ms", std::to_string(start.orphan_timeout_ms)};
  if (!start.working_directory.empty()) {
    arguments.insert(arguments.end(), {"--working-directory", start.working_directory});
  }
  if (!cgroup.empty()) arguments.insert(arguments.end(), {"--cgroup", cgroup});
  if (is_job_daemon(key)) arguments.emplace_back("--release-orphans");
  if (start.lease && !start.lease->cpus.empty()) {
    arguments.insert(arguments.end(), {"--cpus", start.lease->cpus});
  }
  if (start.lease && start.lease->numa_node >= 0) {
    arguments.insert(arguments.end(), {"--numa-node", std::to_string(start.lease->numa_node)});
  }
  if (start.lease) {
    const DeviceClaims claims(settings.device_claims);
    for (const wire::LeasedDevice& device : start.lease->devices) {
      if (device.uuid.empty()) continue;
      arguments.insert(arguments.end(), {"--device-claim", claims.path_of(device.uuid)});
    }
  }
  add_successor(arguments, key, start.run_dir, settings);
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), start.command.begin(), start.command.end());
  return arguments;
}

std::string how_shim_ended(int wait_status) {
  if (WIFSIGNALED(wait_status)) return fmt::format("was ended by signal {}", WTERMSIG(wait_status));
  return fmt::format("ended with code {} and could not write its exit file",
                     WEXITSTATUS(wait_status));
}

}  // namespace

ProcessRunner::ProcessRunner(EventLoop& loop, ProcessStore& store, Settings settings,
                             Handlers handlers)
    : loop_(loop),
      store_(store),
      settings_(std::move(settings)),
      handlers_(std::move(handlers)),
      endings_(loop),
      claim_timer_(loop.call_after(kClaimPeriod, [this] { claim_all(); })) {}

ProcessRunner::~ProcessRunner() {
  *alive_ = false;
  loop_.cancel(claim_timer_);
  for (auto& [key, live] : live_) close_status(live);
}

void ProcessRunner::later(std::function<void()> call) {
  loop_.call_after(Duration::zero(), [alive = alive_, call = std::move(call)] {
    if (*alive) call();
  });
}

void ProcessRunner::claim_all() {
  for (const auto& [key, live] : live_) store_.touch_claim(key);
  claim_timer_ = loop_.call_after(kClaimPeriod, [this] { claim_all(); });
}

// ------------------------------------------------------------------ starting

void ProcessRunner::launch(const ProcessKey& key, StartRequest start) {
  Result<Live> live = start_shim(key, *start);
  if (!live) return fail_start(key, live.error());
  const int status_fd = live->status_fd;
  live_[key] = std::move(*live);
  loop_.watch_fd(status_fd, [this, key] { read_status(key); });
  watch(key);
}

// Most errors of a start would come again. What a user put in its way, such as a signal to all of
// the user's processes, costs this attempt alone.
void ProcessRunner::fail_start(const ProcessKey& key, const Error& why) {
  log_error("{} cannot be started: {}", describe(key), why.message);
  ExitStatus status;
  if (why.kind == ErrorKind::kObstructed) {
    status.signal = SIGKILL;
    status.last_lines = "[antdt: " + why.message + "]";
  } else {
    status.error = why.message;
  }
  later([this, key, status] { handlers_.on_ended(key, status); });
}

Result<ProcessRunner::Live> ProcessRunner::start_shim(const ProcessKey& key,
                                                      const wire::StartProcess& start) {
  const UserIdentity& owner = handlers_.owner_of(key.job);
  ANTDT_RETURN_IF_ERROR(store_.create(key, start, owner));
  const std::string cgroup = make_cgroup(key, start);
  const PythonFiles python = find_python_files(settings_.shim);
  if (lacks_tracer(start.env, python)) {
    log_warn(
        "{} runs unmeasured: the tracer of scripts (share/antdt/trace) is not installed with {}; "
        "in Debian it is in the package libantdt1",
        describe(key), settings_.shim);
  }
  if (!owner.is_own()) {
    ANTDT_TRY(const LaunchedShim shim, launch_shim_of(owner, key, start, cgroup, python));
    return live_of(shim);
  }
  const std::vector<std::string> environment =
      is_job_daemon(key) ? job_daemon_environment(settings_.environment, key)
                         : worker_environment(settings_.environment, settings_.workers_socket, key,
                                              environment_with_devices(start), python);
  const std::vector<std::string> arguments =
      shim_arguments(key, start, store_.directory(key), cgroup, settings_);
  ANTDT_TRY(const LaunchedShim shim, launch_shim(settings_.shim, arguments, environment));
  return live_of(shim);
}

ProcessRunner::Live ProcessRunner::live_of(const LaunchedShim& shim) {
  Live live;
  live.shim = shim.pid;
  live.status_fd = shim.status_fd;
  live.shim_start_time = process_start_time(shim.pid).value_or(0);
  return live;
}

Result<LaunchedShim> ProcessRunner::launch_shim_of(const UserIdentity& owner, const ProcessKey& key,
                                                   const wire::StartProcess& start,
                                                   const std::string& cgroup,
                                                   const PythonFiles& python) const {
  Spawn what;
  what.user = owner;
  what.program = settings_.shim;
  what.environment = worker_environment(environment_of(owner, settings_.environment),
                                        workers_socket_of(settings_.socket_dir, owner.uid), key,
                                        environment_with_devices(start), python);
  OwnedFd procs;
  Pipe status;
  if (!status.open()) return fail_errno(ErrorKind::kIo, errno, "making a pipe for " + what.program);
  fcntl(status.read.get(), F_SETFL, O_NONBLOCK);
  what.standard_output = status.write.get();
  what.arguments = shim_arguments(key, start, store_.shim_directory(key), cgroup, settings_);
  if (!cgroup.empty()) {
    // The kernel checks the rights of the process that opened the file, and the user has none
    // there.
    procs = OwnedFd(open((cgroup + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    const std::string kill = cgroup + "/cgroup.kill";
    if (!procs.is_open() || lchown(kill.c_str(), owner.uid, getegid()) != 0) {
      return fail_errno(ErrorKind::kIo, errno, "handing the cgroup " + cgroup + " to its shim");
    }
    what.pass = {procs.get()};
    what.arguments.insert(what.arguments.begin(),
                          {"--cgroup-procs-fd", std::to_string(procs.get())});
  }
  ANTDT_TRY(const Spawned shim, spawn(what));
  return LaunchedShim{shim.pid, status.read.release()};
}

// A worker that cannot have a cgroup runs without: it loses the limit, not its work.
std::string ProcessRunner::make_cgroup(const ProcessKey& key, const wire::StartProcess& start) {
  if (!settings_.cgroups || is_job_daemon(key)) return {};
  const auto group = settings_.cgroups->make(key, limits_of(start), Duration::zero());
  if (!group) {
    log_warn("{} runs without a cgroup: {}", describe(key), group.error().message);
    return {};
  }
  endings_.keep(*group);
  const Status kept = write_file_atomic(cgroup_file(store_.directory(key)), *group, 0600);
  if (!kept) log_warn("{}: {}", describe(key), kept.error().message);
  return *group;
}

CgroupLimits ProcessRunner::limits_of(const wire::StartProcess& start) const {
  return {start.memory_bytes, settings_.limit_cpus ? start.cpus : 0};
}

// The end of the previous agent may have lifted the limits.
void ProcessRunner::limit_again(const ProcessStore::Stored& stored) const {
  const std::string group = cgroup_of(stored.key);
  if (group.empty() || !settings_.cgroups) return;
  const Status limited = settings_.cgroups->limit(group, limits_of(stored.start));
  if (!limited) log_warn("{}: {}", describe(stored.key), limited.error().message);
}

std::string ProcessRunner::cgroup_of(const ProcessKey& key) const {
  return read_file(cgroup_file(store_.directory(key))).value_or("");
}

void ProcessRunner::read_status(const ProcessKey& key) {
  Live& live = live_.at(key);
  std::array<char, 64> buffer{};
  const ssize_t got = read(live.status_fd, buffer.data(), buffer.size());
  if (got < 0) return;
  live.status_text.append(buffer.data(), static_cast<std::size_t>(got));
  if (got > 0 && live.status_text.find('\n') == std::string::npos) return;
  close_status(live);
  constexpr std::string_view kStarted = "started ";
  std::uint32_t pid = 0;
  const std::string_view text = live.status_text;
  if (!text.starts_with(kStarted)) return;  // the report of its end will say why
  std::from_chars(text.data() + kStarted.size(), text.data() + text.size(), pid);
  live.started = true;
  handlers_.on_started(key, pid);
}

void ProcessRunner::close_status(Live& live) {
  if (live.status_fd < 0) return;
  loop_.unwatch_fd(live.status_fd);
  close(std::exchange(live.status_fd, -1));
}

Result<FileServices::Child> ProcessRunner::start_file_service(const std::string& run_dir,
                                                              const UserIdentity& user) const {
  const std::vector<std::string> environment =
      user.is_own() ? settings_.environment : environment_of(user, settings_.environment);
  ANTDT_TRY(LaunchedFileService service,
            launch_file_service(user, settings_.shim, run_dir, environment));
  return FileServices::Child{service.pid, std::move(service.socket)};
}

// ---------------------------------------------------------------- signalling

void ProcessRunner::signal(const ProcessKey& key, Force force) {
  const auto live = live_.find(key);
  if (live == live_.end()) return;
  const auto send = [&](int number) {
    const Status sent =
        signal_owned(key.job, live->second.shim, live->second.shim_start_time, number);
    if (!sent) log_debug("{}: {}", describe(key), sent.error().message);
  };
  switch (force) {
    case Force::kTerminate:
      return send(SIGTERM);
    case Force::kKill:
      return send(SIGUSR1);
    case Force::kDestroy:
      log_warn("the shim of {} does not answer and is killed", describe(key));
      return send(SIGKILL);
  }
}

Status ProcessRunner::signal_owned(const std::string& job, pid_t pid, std::uint64_t start_time,
                                   int signal) const {
  const UserIdentity& owner = handlers_.owner_of(job);
  return owner.is_own() ? signal_process(pid, start_time, signal)
                        : signal_process_of(owner.uid, pid, start_time, signal);
}

// --------------------------------------------------------------------- ending

void ProcessRunner::watch(const ProcessKey& key) {
  const Status watched = loop_.watch_process(live_.at(key).shim, [alive = alive_, this, key] {
    if (*alive) shim_ended(key);
  });
  if (!watched) later([this, key] { shim_ended(key); });
}

void ProcessRunner::shim_ended(const ProcessKey& key) {
  const auto found = live_.find(key);
  if (found == live_.end()) return;
  // What it wrote before it ended comes first.
  if (found->second.status_fd >= 0) read_status(key);
  close_status(found->second);
  int wait_status = 0;
  const bool reaped = waitpid(found->second.shim, &wait_status, WNOHANG) > 0;
  live_.erase(found);
  const bool told = has_exit(key);
  const pid_t helper = told ? 0 : clean_up_after_shim(key);
  const ExitStatus status = exit_of(key, reaped ? how_shim_ended(wait_status) : "is gone");
  // A shim of another user may empty its worker's cgroup, but not remove it.
  if (told && handlers_.owner_of(key.job).is_own()) return handlers_.on_ended(key, status);
  endings_.make_sure(
      key, {helper, cgroup_of(key), [this, key, status] { handlers_.on_ended(key, status); }});
}

void ProcessRunner::mark_orphaned(const ProcessKey& key) const {
  const Status marked = write_file_atomic(orphaned_file(store_.directory(key)), "", 0600);
  if (!marked) log_warn("{}: {}", describe(key), marked.error().message);
}

ExitStatus ProcessRunner::exit_of(const ProcessKey& key, const std::string& otherwise) const {
  ExitStatus status = recorded_exit(key, otherwise);
  // A process that had done its work before the signal reached it is none.
  const bool marked = access(orphaned_file(store_.directory(key)).c_str(), F_OK) == 0;
  if (marked && status.code != 0) status.orphaned = true;
  return status;
}

ExitStatus ProcessRunner::recorded_exit(const ProcessKey& key, const std::string& otherwise) const {
  ExitStatus unknown;
  unknown.signal = SIGKILL;  // a worker is killed with its shim
  const Result<std::string> text = read_exit(key);
  if (!text) {
    unknown.oom = oom_evidence(unknown, memory_events(cgroup_of(key)));
    unknown.last_lines = "[antdt: its antdt-shim " + otherwise + "]";
    return unknown;
  }
  Result<ExitStatus> status = parse_exit(*text);
  if (status) return *status;
  unknown.last_lines = "[antdt: " + status.error().message + "]";
  return unknown;
}

// If the agent wrote an exit file itself, that one counts, and not the shim's.
Result<std::string> ProcessRunner::read_exit(const ProcessKey& key) const {
  const std::string shims = store_.shim_directory(key);
  const std::string own = store_.directory(key);
  const uid_t owner = handlers_.owner_of(key.job).uid;
  if (shims != own && access(exit_file(own).c_str(), F_OK) == 0) return read_file(exit_file(own));
  return read_file_of(owner, exit_file(shims), kLargestShimFile);
}

bool ProcessRunner::has_exit(const ProcessKey& key) const { return read_exit(key).has_value(); }

std::optional<PidFile> ProcessRunner::read_pids(const ProcessKey& key) const {
  const Result<std::string> text = read_file_of(
      handlers_.owner_of(key.job).uid, pid_file(store_.shim_directory(key)), kLargestShimFile);
  return text ? parse_pid_file(*text) : std::nullopt;
}

// For another user's job, a process of that user ends what has its marks: the kernel then makes
// sure that no other user's processes are hit, and the agent needs no right to read the
// environments.
pid_t ProcessRunner::clean_up_after_shim(const ProcessKey& key) const {
  if (const auto pids = read_pids(key)) {
    [[maybe_unused]] const Status gone =
        signal_owned(key.job, pids->worker.pid, pids->worker.start_time, SIGKILL);
  }
  kill_cgroup(cgroup_of(key));
  if (is_job_daemon(key)) return 0;  // its children do not have such marks
  const std::vector<std::string> marks = {"ANTDT_JOB_ID=" + key.job,
                                          "ANTDT_WORKER_ID=" + to_string(key.member.worker),
                                          fmt::format("ANTDT_ATTEMPT={}", key.member.attempt)};
  const UserIdentity& owner = handlers_.owner_of(key.job);
  if (owner.is_own()) {
    kill_marked(marks);
    return 0;
  }
  const Result<pid_t> helper = launch_kill_marked(owner, settings_.shim, marks);
  if (!helper) log_warn("{}: {}", describe(key), helper.error().message);
  return helper.value_or(0);
}

void ProcessRunner::forget(const ProcessKey& key) {
  endings_.remove(cgroup_of(key));  // it is gone already, unless its processes take long to end
  const UserIdentity& owner = handlers_.owner_of(key.job);
  remove_process_socket(owner.is_own() ? settings_.workers_socket
                                       : workers_socket_of(settings_.socket_dir, owner.uid),
                        key.job, key.member);
  store_.forget(key);
}

// ------------------------------------------------------------------- adopting

std::vector<supervision::ProcessFound> ProcessRunner::adopt() {
  std::vector<supervision::ProcessFound> adopted;
  for (const ProcessStore::Stored& stored : store_.processes()) {
    adopted.push_back(adopt_one(stored));
  }
  return adopted;
}

supervision::ProcessFound ProcessRunner::adopt_one(const ProcessStore::Stored& stored) {
  const std::string dir = store_.shim_directory(stored.key);
  supervision::ProcessFound adopted{
      stored.key, std::make_shared<wire::StartProcess>(stored.start), 0, {}};
  store_.touch_claim(stored.key);
  const Result<PidLock> lock = PidLock::take(dir);
  if (!lock && lock.error().kind == ErrorKind::kRefused) {
    live_[stored.key] = {};
    limit_again(stored);
    look_again(stored.key);
    const auto pids = read_pids(stored.key);
    if (pids) adopted.pid = static_cast<std::uint32_t>(pids->worker.pid);
    return adopted;
  }
  // No shim lives, and while this agent holds the lock none can begin. The exit file is written
  // before the lock is released, so later agents find the same answer.
  const bool told = has_exit(stored.key);
  const pid_t helper = told ? 0 : clean_up_after_shim(stored.key);
  const ExitStatus status = exit_of(stored.key, "was gone when this agent began");
  if (told) {
    adopted.status = status;
    return adopted;
  }
  if (handlers_.owner_of(stored.key.job).is_own()) {
    save_exit(stored.key, status);
    adopted.status = status;
    return adopted;
  }
  // A shim of another user does not see the exit file. It cannot begin if its own pid file is
  // missing, so the end may be told later. An agent after this one would make sure of it again.
  unlink(pid_file(dir).c_str());
  endings_.make_sure(stored.key, {helper, cgroup_of(stored.key), [this, key = stored.key, status] {
                                    save_exit(key, status);
                                    handlers_.on_ended(key, status);
                                  }});
  return adopted;
}

void ProcessRunner::save_exit(const ProcessKey& key, const ExitStatus& status) const {
  const Status written =
      write_file_atomic(exit_file(store_.directory(key)), format_exit(status), 0600);
  if (!written) log_warn("{}: {}", describe(key), written.error().message);
}

void ProcessRunner::look_again(const ProcessKey& key) {
  const auto found = live_.find(key);
  if (found == live_.end()) return;
  const std::string dir = store_.shim_directory(key);
  const auto pids = read_pids(key);
  if (pids) {
    found->second.shim = pids->shim.pid;
    found->second.shim_start_time = pids->shim.start_time;
    later([this, key, pid = static_cast<std::uint32_t>(pids->worker.pid)] {
      handlers_.on_started(key, pid);
    });
    return watch(key);
  }
  // It holds the lock but has not written its pid: it is beginning, or has just ended.
  if (PidLock::take(dir)) return later([this, key] { shim_ended(key); });
  loop_.call_after(kLookAgain, [alive = alive_, this, key] {
    if (*alive) look_again(key);
  });
}

}  // namespace antdt::antdtd
