// Which processes an agent keeps, and what it does about each. docs/machines.md describes the shape
// of a machine.
//
//            StartWanted                WorkerStarted
//   (none) ──────────────> launching ─────────────────> running
//      │ older attempt alive   │  StopWanted               │
//      v                       v  SIGTERM, grace           │
//   waiting ── it ended ──> (launching)   stopping <───────┘
//                                            │ grace over: SIGKILL to the tree
//                                            v
//                                         killing ── still there: the shim too
//   each of them ── ProcessEnded ──> ended ── ExitAcknowledged ──> forgotten, but the newest
//                                                                  attempt: acknowledged
//
// For each job:
//                                  its daemon is silent for too long
//   (unknown) ──StartWanted──> held ─────────────────────────────────> orphaned
//                               │  ^─────────its daemon is heard──────────┘
//                               v
//   any ──JobOver──> over ── the last process has ended ──> (unknown)
//
// Nothing is durable here: an agent that is started again finds the processes of the one before in
// its store (ProcessFound).
//
// Invariants:
//  - of one worker id at most one attempt runs: a newer one waits until the
//    older is gone;
//  - an end is reported again and again until it is acknowledged;
//  - what live processes lease never exceeds the capacity (of devices: device_leases.h);
//  - a job whose daemon has been silent for its orphan timeout has no process
//    left after its grace.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "antdtd/devices/device_leases.h"
#include "antdtd/host/host.h"
#include "antdtd/shim/process_key.h"
#include "core/clock.h"
#include "core/wire/agent_messages.h"
#include "core/wire/envelope.h"

namespace antdt::antdtd {

// How forcefully a process is ended.
enum class Force {
  kTerminate,  // SIGTERM to every process of the tree
  kKill,       // SIGKILL to every process of the tree
  kDestroy,    // the same, and SIGKILL to the shim, which did not answer
};

using StartRequest = std::shared_ptr<const wire::StartProcess>;

namespace supervision {

enum class Phase { kWaiting, kLaunching, kRunning, kStopping, kKilling, kEnded, kAcknowledged };
[[nodiscard]] const char* to_string(Phase phase);

struct StartWanted {
  ProcessKey key;
  StartRequest start;
  std::uint64_t seq = 0;
};
struct StopWanted {
  ProcessKey key;
  Duration grace{};
};
struct WorkerStarted {
  ProcessKey key;
  std::uint32_t pid = 0;
};
struct ProcessEnded {
  ProcessKey key;
  ExitStatus status;
};
struct ExitAcknowledged {
  ProcessKey key;
};
// The job's daemon attached. All ends that it has not acknowledged are reported to it again at
// once.
struct DaemonAttached {
  std::string job;
};
// A message of the job's daemon arrived, so the daemon lives.
struct DaemonHeard {
  std::string job;
};
// The job is over: stop what is left and forget it.
struct JobOver {
  std::string job;
};
// A process that an earlier agent started; with `status` if it has ended.
struct ProcessFound {
  ProcessKey key;
  StartRequest start;
  std::uint32_t pid = 0;  // 0: not known yet
  std::optional<ExitStatus> status;
};
// A job of which an earlier agent left a record. Without a daemon that attaches it is forgotten
// like any other.
struct JobFound {
  std::string job;
};
struct TimePassed {};
using Input = std::variant<StartWanted, StopWanted, WorkerStarted, ProcessEnded, ExitAcknowledged,
                           DaemonAttached, DaemonHeard, JobOver, ProcessFound, JobFound, TimePassed,
                           leases::DevicesSeen>;

struct LaunchProcess {
  ProcessKey key;
  StartRequest start;
};
struct SignalProcess {
  ProcessKey key;
  Force force;
};
// Its end will be that of an orphan. This is durable before the process is signalled, so that a
// later agent does not take its end for the program's own wish.
struct MarkOrphaned {
  ProcessKey key;
};
struct ReportStarted {
  ProcessKey key;
  std::uint32_t pid = 0;
  std::uint64_t seq = 0;
};
// A device of a live process is not healthy any more.
struct ReportDeviceTrouble {
  ProcessKey key;
  std::string problem;
};
struct ReportExit {
  ProcessKey key;
  ExitStatus status;
};
struct RefuseStart {
  ProcessKey key;
  std::uint64_t seq = 0;
  wire::RefusalCode code = wire::RefusalCode::kOther;
  std::string reason;
};
struct ForgetProcess {
  ProcessKey key;
};
struct ForgetJob {
  std::string job;
};
// A message to people, for the agent's log.
struct WriteToLog {
  std::string text;
};
using Effect =
    std::variant<LaunchProcess, SignalProcess, MarkOrphaned, ReportStarted, ReportDeviceTrouble,
                 ReportExit, RefuseStart, ForgetProcess, ForgetJob, WriteToLog>;
using Effects = std::vector<Effect>;

struct SupervisionTimes {
  Duration exit_repeat = std::chrono::seconds(1);
  Duration kill_patience = std::chrono::seconds(5);  // time until the shim is killed, too
  // for processes of a job that is over or orphaned
  Duration leftover_grace = std::chrono::seconds(5);
  Duration forget_after = std::chrono::hours(1);  // how long ends are kept that nobody acknowledges
};

class Supervision {
 public:
  // Devices of `capacity` are counted until DevicesSeen says more of them.
  explicit Supervision(Capacity capacity, SupervisionTimes times = {});

  void step(const Input& input, MonoTime now, Effects& out);
  // When step(TimePassed) is due next, if nothing else happens.
  [[nodiscard]] std::optional<MonoTime> next_wakeup() const;

  // ---- queries
  struct Process {
    StartRequest start;
    Phase phase = Phase::kWaiting;
    std::uint32_t pid = 0;
    std::uint64_t seq = 0;  // seq of the request that is still to be answered; 0: none
    // in stopping and killing: when force rises; in ended: when it is reported next
    MonoTime deadline{};
    std::optional<ExitStatus> status;
    [[nodiscard]] bool live() const {
      return phase != Phase::kEnded && phase != Phase::kAcknowledged;
    }
  };
  // The process, or null; valid until the next step.
  [[nodiscard]] const Process* find(const ProcessKey& key) const;
  // The newest attempt of a worker; 0 if none is known.
  [[nodiscard]] Attempt newest(const std::string& job, WorkerId worker) const;
  [[nodiscard]] std::vector<wire::RunningProcess> running(const std::string& job) const;
  [[nodiscard]] Capacity free() const;
  [[nodiscard]] const DeviceLeases& devices() const { return devices_; }
  [[nodiscard]] bool knows(const std::string& job) const;
  // Whether the job is known and over: its last processes are being ended.
  [[nodiscard]] bool is_over(const std::string& job) const;

 private:
  enum class Standing {
    kHeld,      // the job has a daemon that was heard lately
    kOrphaned,  // its processes were stopped because its daemon was silent
    kOver,      // its daemon ended it: what is left is stopped and forgotten
  };
  struct Job {
    std::map<Member, Process> processes;
    std::map<WorkerId, Attempt> newest;
    MonoTime last_heard{};
    Duration orphan_timeout{};  // the longest of its processes' orphan timeouts; 0: none
    Standing standing = Standing::kHeld;
    [[nodiscard]] bool has_live() const;
  };
  struct Turn {
    MonoTime now;
    Effects& out;
    template <class E>
    void add(E effect) {
      out.emplace_back(std::move(effect));
    }
  };

  void on(const StartWanted& e, Turn& turn);
  void on(const StopWanted& e, Turn& turn);
  void on(const WorkerStarted& e, Turn& turn);
  void on(const ProcessEnded& e, Turn& turn);
  void on(const ExitAcknowledged& e, Turn& turn);
  void on(const DaemonAttached& e, Turn& turn);
  void on(const DaemonHeard& e, Turn& turn);
  void on(const JobOver& e, Turn& turn);
  void on(const ProcessFound& e, Turn& turn);
  void on(const JobFound& e, Turn& turn);
  void on(const TimePassed& e, Turn& turn);
  void on(const leases::DevicesSeen& e, Turn& turn);

  Job& job_at(const std::string& name, MonoTime now);
  void heard(Job& job, MonoTime now);
  void answer_again(const ProcessKey& key, Process& process, std::uint64_t seq, Turn& turn);
  void retire_older(const std::string& name, Job& job, Member newer, Turn& turn);
  void stop(const ProcessKey& key, Process& process, Duration grace, Turn& turn);
  void stop_all(const std::string& name, Job& job, Turn& turn);
  void stop_orphans(const std::string& name, Job& job, Turn& turn);
  void raise_force(const ProcessKey& key, Process& process, Turn& turn);
  void end(const ProcessKey& key, Process& process, ExitStatus status, Turn& turn);
  void launch_waiting(const std::string& name, Job& job, WorkerId worker, Turn& turn);
  void advance_process(const ProcessKey& key, Process& process, Turn& turn);
  void advance_job(const std::string& name, Job& job, Turn& turn);
  // Drops the ended processes of a job that is over, and the job itself with the last one.
  void sweep(const std::string& name, Turn& turn);
  [[nodiscard]] std::optional<MonoTime> next_wakeup(const Job& job) const;
  // What is wrong with the numbers of `start`, whatever is free; "" if nothing is.
  [[nodiscard]] static std::string unsound(const wire::StartProcess& start);
  // Why the resources that `start` requests are not available; "" if they are.
  [[nodiscard]] std::string misfit(const wire::StartProcess& start, const ProcessKey& key) const;
  // The order with the lease of the devices that it asks for, or null: the start was refused.
  [[nodiscard]] StartRequest lease_devices(const StartWanted& e, Turn& turn);
  void find_lease(const ProcessKey& key, Process& process, Turn& turn);
  void tell_trouble(const leases::Effects& effects, Turn& turn);
  [[nodiscard]] std::string evidence_of_devices(const StartRequest& start,
                                                const ExitStatus& status) const;
  // What is not leased, as if no attempt of `except` lived.
  [[nodiscard]] Capacity free_without(const ProcessKey* except) const;
  Process* find_mutable(const ProcessKey& key);
  void check_invariants() const;

  Capacity capacity_;
  SupervisionTimes times_;
  DeviceLeases devices_;
  std::map<std::string, Job> jobs_;
};

}  // namespace supervision

using supervision::Supervision;

}  // namespace antdt::antdtd
