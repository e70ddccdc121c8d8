#include "antdtd/agent/private_job.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "core/log/log.h"
#include "core/os/fs.h"
#include "core/report/given_up.h"
#include "core/wire/packet.h"

namespace antdt::antdtd {
namespace {

constexpr Duration kLastNotes = std::chrono::seconds(1);

bool is_standard_error(const std::string& path) {
  struct stat named {};
  struct stat ours {};
  return stat(path.c_str(), &named) == 0 && fstat(STDERR_FILENO, &ours) == 0 &&
         named.st_dev == ours.st_dev && named.st_ino == ours.st_ino;
}

}  // namespace

PrivateJob::PrivateJob(Parts parts, Options options, Calls calls)
    : parts_(parts),
      options_(std::move(options)),
      calls_(std::move(calls)),
      keeper_(options_.orphan_timeout / 2),
      notes_(std::make_unique<DiskThread>(parts_.clock)) {
  if (!options_.is_private) return;
  for (const auto& [job, record] : parts_.records) {
    if (!record.command.empty()) job_ = job;
  }
}

PrivateJob::~PrivateJob() {
  // the stuck thread ends with the process
  if (!notes_->end(kLastNotes)) static_cast<void>(notes_.release());
  if (patience_timer_) parts_.loop.cancel(*patience_timer_);
}

void PrivateJob::adopt(Attempt attempt, const std::optional<ExitStatus>& status) {
  if (attempt < keeper_.attempt()) return;
  tell(keeper::DaemonAdopted{attempt});
  last_end_ = status;
}

void PrivateJob::begin() {
  if (!options_.is_private) return;
  if (job_.empty()) {
    patience_timer_ = parts_.loop.call_after(options_.idle_exit, [this] {
      log_info("no job was given for {:.0f} s: ending", to_seconds(options_.idle_exit));
      finished_ = true;
      parts_.loop.stop();
    });
  } else if (keeper_.state() == keeper::JobKeeper::State::kIdle) {
    tell(keeper::StartOrdered{});
  } else if (last_end_) {
    parts_.loop.call_after(
        Duration::zero(), [this, status = *last_end_] { daemon_ended(keeper_.attempt(), status); });
  }
}

// ------------------------------------------------------------------- what happens

void PrivateJob::start(const wire::Envelope& envelope, const wire::Packet& packet) {
  const auto refuse = [&](wire::RefusalCode code, std::string reason) {
    parts_.daemons.refuse(packet, envelope, code, std::move(reason));
  };
  const Result<wire::StartJob> start = wire::decode<wire::StartJob>(packet.body);
  if (!start) return refuse(wire::RefusalCode::kInvalid, start.error().message);
  if (!options_.is_private || start->command.empty()) {
    return refuse(wire::RefusalCode::kInvalid,
                  "only a private agent (antdtd --private) starts job daemons, and it "
                  "needs their command");
  }
  if (!job_.empty() && job_ != envelope.job) {
    return refuse(wire::RefusalCode::kBusy, "this agent keeps job " + job_ + " already");
  }
  launchers_.push_back({packet, envelope});
  if (keeper_.state() != keeper::JobKeeper::State::kIdle) return answer_launchers();
  job_ = envelope.job;
  if (patience_timer_) parts_.loop.cancel(*patience_timer_);
  JobRecord& record = parts_.records[job_];
  record.run_dir = start->run_dir;
  record.command = start->command;
  const Status saved = parts_.store.save_job(job_, record);
  if (!saved) log_error("{}", saved.error().message);
  tell(keeper::StartOrdered{});
}

void PrivateJob::daemon_started(std::uint32_t pid) {
  daemon_pid_ = pid;
  log_info("the daemon of job {} runs as process {}", job_, pid);
  answer_launchers();
}

void PrivateJob::daemon_ended(Attempt attempt, const ExitStatus& status) {
  if (attempt != keeper_.attempt()) return;
  parts_.runner.forget(daemon_key());
  if (!status.error.empty() && !launchers_.empty()) {
    // A launcher that waits can tell its user at once.
    for (const Waiting& waiting : std::exchange(launchers_, {})) {
      parts_.daemons.refuse(waiting.packet, waiting.envelope, wire::RefusalCode::kInvalid,
                            status.error);
    }
  }
  tell(keeper::DaemonExited{status});
  calls_.restart_due();
  if (!keeper_.ended()) return;
  answer_launchers();
  calls_.over(job_);
}

void PrivateJob::daemon_spoke(const std::string& job) {
  if (job == job_) tell(keeper::DaemonSpoke{});
}

void PrivateJob::daemon_detached(const std::string& job) {
  if (job != job_) return;
  constexpr Duration kPatience = std::chrono::seconds(30);
  tell(keeper::JobEndAnnounced{});
  patience_timer_ = parts_.loop.call_after(kPatience, [this] {
    log_warn("the job daemon said that the job is over and does not end: killed");
    parts_.runner.signal(daemon_key(), Force::kKill);
  });
}

void PrivateJob::job_forgotten(const std::string& job) {
  if (job != job_ || !keeper_.ended() || finished_) return;
  parts_.store.forget_job(job);
  finished_ = true;
  parts_.loop.stop();
}

void PrivateJob::advance() { tell(keeper::TimePassed{}); }

void PrivateJob::answer_launchers() {
  const bool up = keeper_.state() == keeper::JobKeeper::State::kUp && daemon_pid_ != 0;
  if (!up && !keeper_.ended()) return;
  for (const Waiting& waiting : std::exchange(launchers_, {})) {
    if (up) {
      parts_.daemons.reply(waiting.packet,
                           wire::make_packet(waiting.envelope, wire::JobStarted{daemon_pid_}));
    } else {
      parts_.daemons.refuse(waiting.packet, waiting.envelope, wire::RefusalCode::kInvalid,
                            "the job daemon is not running; " + job_ + " may be over already");
    }
  }
}

// ------------------------------------------------------------------- effects

void PrivateJob::tell(const keeper::Input& input) {
  keeper::Effects wanted;
  keeper_.step(input, parts_.loop.now(), wanted);
  for (const keeper::Effect& effect : wanted) {
    std::visit([this](const auto& e) { run(e); }, effect);
  }
}

void PrivateJob::run(const keeper::LaunchDaemon& effect) {
  const JobRecord& record = parts_.records[job_];
  auto start = std::make_shared<wire::StartProcess>();
  start->command = record.command;
  start->run_dir = record.run_dir;
  start->orphan_timeout_ms = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.orphan_timeout).count());
  daemon_pid_ = 0;
  log_info("starting the daemon of job {}: {}", job_, fmt::join(record.command, " "));
  notes_->run("removing given-up", [path = given_up_file(record.run_dir)] {
    ::unlink(path.c_str());  // of an earlier time: it is being tried again
    return DiskThread::Then();
  });
  parts_.runner.launch({job_, {kJobDaemon, effect.attempt}}, std::move(start));
}

void PrivateJob::run(const keeper::KillDaemon&) {
  parts_.runner.signal(daemon_key(), Force::kKill);
}

void PrivateJob::run(const keeper::KillShim&) {
  parts_.runner.signal(daemon_key(), Force::kDestroy);
}

// Written into RUN/agent.log, where people look first when a run is silent, unless the log goes
// there anyway.
void PrivateJob::run(const keeper::ReportOnJob& effect) {
  log_warn("job {}: {}", job_, effect.text);
  const std::string path = parts_.records[job_].run_dir + "/agent.log";
  if (path == options_.log_file) return;
  notes_->run("writing agent.log", [path, line = fmt::format("job {}: {}\n", job_, effect.text)] {
    if (is_standard_error(path)) return DiskThread::Then();
    if (FILE* file = std::fopen(path.c_str(), "ae")) {
      fmt::print(file, "{}", line);
      std::fclose(file);
    }
    return DiskThread::Then();
  });
}

// Without it, on a disk that is full for instance, agent.log has the reason.
void PrivateJob::run(const keeper::GiveUpJob& effect) {
  const std::string path = given_up_file(parts_.records[job_].run_dir);
  notes_->run("writing given-up", [path, text = effect.why + "\n"] {
    [[maybe_unused]] const Status written = write_file_atomic(path, text, 0600);
    return DiskThread::Then();
  });
}

}  // namespace antdt::antdtd
