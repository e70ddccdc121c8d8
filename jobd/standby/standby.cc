#include "jobd/standby/standby.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <utility>

#include "core/log/log.h"
#include "core/os/fs.h"
#include "core/os/process.h"
#include "core/os/runtime_dir.h"
#include "core/report/given_up.h"
#include "jobd/standby/run_files.h"
#include "launcher/config/cluster.h"
#include "launcher/config/config_json.h"
#include "launcher/start/leftovers.h"
#include "launcher/start/run_directory.h"
#include "launcher/start/start.h"
#include "store/client.h"
#include "store/etcd_journal.h"

namespace antdt::jobd {
namespace {

constexpr Duration kLookEvery = std::chrono::milliseconds(500);
constexpr Duration kTendEvery = std::chrono::hours(1);

// The files of a run that a job daemon reads when it begins.
constexpr const char* kRunFiles[] = {"job.json", "data.json"};

// Writes the run's files of this host. Afterwards its configuration can be read there.
Result<launcher::JobConfig> lay_files(store::Etcd& etcd, const StandbyOptions& standby,
                                      const Options& options) {
  for (const std::string& directory : {options.run_dir, options.run_dir + "/logs",
                                       options.run_dir + "/checkpoints", options.state_dir}) {
    ANTDT_RETURN_IF_ERROR(make_directories(directory, 0700));
  }
  ANTDT_TRY(const transport::KeyPair key, transport::load_key_pair(standby.keys + "/job.key"));
  const RunFileSeal seal(key, standby.journal);
  for (const char* name : kRunFiles) {
    ANTDT_TRY(const std::string sealed, store::read_run_file(etcd, standby.journal, name));
    ANTDT_TRY(const std::string bytes, seal.open(name, sealed));
    ANTDT_RETURN_IF_ERROR(
        write_file_atomic(fmt::format("{}/{}", options.run_dir, name), bytes, 0600));
  }
  ANTDT_RETURN_IF_ERROR(
      write_file_atomic(options.run_dir + "/etcd-journal", standby.journal + "\n", 0600));
  return launcher::load_effective(options.run_dir);
}

// Whether a job daemon has kept the summary of the job's end.
Result<bool> has_ended(store::Etcd& etcd, const StandbyOptions& standby) {
  ANTDT_TRY(const transport::KeyPair key, transport::load_key_pair(standby.keys + "/job.key"));
  ANTDT_TRY(const std::string sealed, store::read_run_file(etcd, standby.journal, kSummaryFile));
  ANTDT_TRY(const std::string summary,
            RunFileSeal(key, standby.journal).open(kSummaryFile, sealed));
  return !summary.empty();
}

// The private directory of a job's sockets on this host, with the lock that keeps others from
// removing it. It is removed with this object. No agent keeps it from cleaners of /tmp, so this
// does, while the loop runs, and before that in tend().
class SocketDirectory {
 public:
  static Result<std::shared_ptr<SocketDirectory>> make(EventLoop& loop, const Clock& clock,
                                                       const std::string& path) {
    ANTDT_RETURN_IF_ERROR(ensure_private_directory(path));
    ANTDT_RETURN_IF_ERROR(make_directories(path + "/state", 0700));
    ANTDT_TRY(FileLock lock, FileLock::acquire(launcher::private_agent_lock(path)));
    return std::make_shared<SocketDirectory>(loop, clock, path, std::move(lock));
  }
  SocketDirectory(EventLoop& loop, const Clock& clock, std::string path, FileLock lock)
      : loop_(loop), clock_(clock), path_(std::move(path)), lock_(std::move(lock)), kept_({path_}) {
    tend_later();
  }
  ~SocketDirectory() {
    loop_.cancel(timer_);
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  SocketDirectory(const SocketDirectory&) = delete;
  SocketDirectory& operator=(const SocketDirectory&) = delete;

  void tend() { kept_.tend(clock_.now()); }

 private:
  void tend_later() {
    timer_ = loop_.call_after(kTendEvery, [this] {
      tend();
      tend_later();
    });
  }

  EventLoop& loop_;
  const Clock& clock_;
  std::string path_;
  FileLock lock_;
  KeptDirectories kept_;
  TimerId timer_;
};

// The signals that end a process in good order.
sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// kAborted if one of them comes meanwhile.
Status wait_unless_ended(Duration time) {
  const sigset_t signals = ending_signals();
  const auto ns = std::chrono::nanoseconds(time).count();
  const timespec wait{ns / 1'000'000'000, ns % 1'000'000'000};
  const int signal = ::sigtimedwait(&signals, nullptr, &wait);
  if (signal < 0) return {};
  return fail(ErrorKind::kAborted, "signal {} while it stood by", signal);
}

Status write_control_of(const launcher::JobConfig& config, const Options& options) {
  launcher::RunControl control;
  control.job = config.job.id;
  control.jobd_socket = options.socket_dir + "/jobd.sock";
  control.agent_socket = options.socket_dir + "/agent.sock";
  control.state_dir = options.state_dir;
  control.agent_pid = ::getpid();
  control.agent_start_time = process_start_time(control.agent_pid).value_or(0);
  return launcher::write_control(options.run_dir, control);
}

// What `request` answers, asked again until etcd answers.
template <class Request>
auto until_answered(Request request) -> decltype(request()) {
  std::string said;
  for (;;) {
    auto answer = request();
    if (answer || answer.error().kind != ErrorKind::kUnreachable) return answer;
    if (answer.error().message != said) log_warn("{}", answer.error().message);
    said = answer.error().message;
    ANTDT_RETURN_IF_ERROR(wait_unless_ended(kLookEvery));
  }
}

// Returns when the lock is free. kUsage if etcd has no such job any more.
Status await_free_lock(store::Etcd& etcd, const StandbyOptions& standby,
                       SocketDirectory& directory) {
  for (;;) {
    directory.tend();
    ANTDT_TRY(const store::JobInEtcd job,
              until_answered([&] { return store::look_at_job(etcd, standby.journal); }));
    if (!job.exists) return fail(ErrorKind::kUsage, "etcd has no job {} any more", standby.journal);
    if (job.holder.empty()) return {};
    ANTDT_RETURN_IF_ERROR(wait_unless_ended(kLookEvery));
  }
}

}  // namespace

Result<std::unique_ptr<JobDaemon>> stand_by(EventLoop& loop, const Clock& clock,
                                            transport::Context& context, Options options,
                                            const StandbyOptions& standby) {
  // The launching host's daemon began well. What this host alone cannot do, such as listening at
  // metrics.listen, must not end the job.
  options.is_restart = true;
  const sigset_t signals = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ANTDT_TRY(const auto etcd, store::Client::make(standby.etcd));
  ANTDT_TRY(const std::string root, runtime_directory());
  // What is missing here is better known now than when it is needed.
  const auto lay = [&] { return lay_files(*etcd, standby, options); };
  ANTDT_TRY(const launcher::JobConfig config, until_answered(lay));
  ANTDT_RETURN_IF_ERROR(launcher::load_cluster_keys(config.cluster).map([](const auto&) {}));
  options.socket_dir = launcher::socket_directory(root, config.job.id);
  launcher::remove_dead(root);
  ANTDT_TRY(const auto directory, SocketDirectory::make(loop, clock, options.socket_dir));
  options.socket_directory = directory;
  log_info("stands by for job {}", config.job.id);
  for (;;) {
    ANTDT_RETURN_IF_ERROR(await_free_lock(*etcd, standby, *directory));
    ANTDT_TRY(const bool ended, until_answered([&] { return has_ended(*etcd, standby); }));
    if (ended) return fail(ErrorKind::kAborted, "job {} has ended", config.job.id);
    ANTDT_TRY(const launcher::JobConfig now, until_answered(lay));
    auto daemon = JobDaemon::open(loop, clock, context, options);
    if (daemon) {
      ANTDT_RETURN_IF_ERROR(write_control_of(now, options));
      ::unlink(given_up_file(options.run_dir).c_str());
      return daemon;
    }
    // Another one was faster, or etcd does not answer.
    const ErrorKind kind = daemon.error().kind;
    if (kind != ErrorKind::kAborted && kind != ErrorKind::kUnreachable) return daemon;
    log_warn("{}", daemon.error().message);
  }
}

}  // namespace antdt::jobd
