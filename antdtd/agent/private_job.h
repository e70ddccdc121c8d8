// The one job of a private agent: its job daemon, which the agent starts, watches and starts again
// (job_keeper.h decides when), the launchers that wait for it, and the end of the agent with its
// job. An agent that is not private has no job of its own and refuses to start one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "antdtd/agent/daemon_links.h"
#include "antdtd/agent/job_keeper.h"
#include "antdtd/processes/process_runner.h"
#include "antdtd/processes/process_store.h"
#include "core/loop.h"
#include "core/threads/disk_thread.h"

namespace antdt::antdtd {

class PrivateJob {
 public:
  struct Options {
    bool is_private = false;
    Duration idle_exit{};       // the agent ends if it is given no job within this time
    Duration orphan_timeout{};  // orphan timeout of the job daemon
    std::string log_file;       // log file of the agent
  };
  struct Parts {
    EventLoop& loop;
    const Clock& clock;
    ProcessStore& store;
    ProcessRunner& runner;
    DaemonLinks& daemons;
    std::map<std::string, JobRecord>& records;
  };
  struct Calls {
    std::function<void(const std::string& job)> over;  // no job daemon of the job will run again
    std::function<void()> restart_due;                 // next_wakeup() has changed
  };
  PrivateJob(Parts parts, Options options, Calls calls);
  ~PrivateJob();
  PrivateJob(const PrivateJob&) = delete;
  PrivateJob& operator=(const PrivateJob&) = delete;

  // Takes over what an earlier agent left. Then begin() starts what is missing.
  void adopt(Attempt attempt, const std::optional<ExitStatus>& status);
  void begin();

  // A launcher wants the job daemon started. It is answered when the daemon runs, or will not run.
  void start(const wire::Envelope& envelope, const wire::Packet& packet);
  void daemon_started(std::uint32_t pid);
  void daemon_ended(Attempt attempt, const ExitStatus& status);
  void daemon_spoke(const std::string& job);
  void daemon_detached(const std::string& job);
  // Nothing is left of the job. If it is this agent's own job, the loop stops.
  void job_forgotten(const std::string& job);
  void advance();
  [[nodiscard]] std::optional<MonoTime> next_wakeup() const { return keeper_.next_wakeup(); }

  [[nodiscard]] const std::string& name() const { return job_; }  // empty: no job yet
  [[nodiscard]] bool finished() const { return finished_; }

 private:
  struct Waiting {  // a launcher that waits until its job daemon runs
    wire::Packet packet;
    wire::Envelope envelope;
  };
  void tell(const keeper::Input& input);
  void run(const keeper::LaunchDaemon& effect);
  void run(const keeper::KillDaemon& effect);
  void run(const keeper::KillShim& effect);
  void run(const keeper::ReportOnJob& effect);
  void run(const keeper::GiveUpJob& effect);
  void answer_launchers();
  [[nodiscard]] ProcessKey daemon_key() const { return {job_, {kJobDaemon, keeper_.attempt()}}; }

  Parts parts_;
  Options options_;
  Calls calls_;
  std::string job_;
  keeper::JobKeeper keeper_;
  std::uint32_t daemon_pid_ = 0;
  std::optional<ExitStatus> last_end_;  // end of the newest attempt of an earlier agent
  std::vector<Waiting> launchers_;
  bool finished_ = false;
  // for the idle exit, and for a job daemon that does not end
  std::optional<TimerId> patience_timer_;
  // writes agent.log and RUN/given-up, whose disk may not answer
  std::unique_ptr<DiskThread> notes_;
};

}  // namespace antdt::antdtd
