// Whether a private agent starts its job daemon again. docs/machines.md describes the shape of a
// machine.
//
//   idle ──StartOrdered──> up ──DaemonExited with 0,1,2,3,4,75, or after JobEndAnnounced──> over
//     │                    │ ^
//     └──DaemonAdopted─────┘ └──(LaunchDaemon)────────────────────────────┐
//                          │                                              │
//       up ──TimePassed, silent for too long──> killing (KillDaemon)      │
//       killing ──TimePassed, kKillPatience later──> killing (KillShim)   │
//       up, killing ──DaemonExited, otherwise──> restarting ──TimePassed, after a pause──┘
//       up, killing ──DaemonExited; it cannot be executed, has crashed again and again, or has not
//                     come up again for kPatience──> gave up (GiveUpJob)
//
// A job daemon that is started again may fail before it can go on (its keys cannot be read, or a
// predecessor still holds the lock). Whatever the reason, it ends with exit code 5: see
// cmd/antdt-jobd/main.cc.
//
// Nothing is durable here: a daemon that an earlier agent started is found in the agent's store
// (DaemonAdopted).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "antdtd/shim/process_key.h"
#include "core/clock.h"

namespace antdt::antdtd::keeper {

struct StartOrdered {};
// A job daemon that an earlier agent started runs as `attempt`. It connects to this agent at once.
struct DaemonAdopted {
  Attempt attempt;
};
struct DaemonExited {
  ExitStatus status;
};
// The job daemon announced that the job is over, so its next end, whatever its exit code, is the
// last.
struct JobEndAnnounced {};
// The job daemon attached or sent something. A daemon that has not done so yet is given more time,
// because it may be reading its journal from a disk that does not answer.
struct DaemonSpoke {};
struct TimePassed {};
using Input = std::variant<StartOrdered, DaemonAdopted, DaemonExited, JobEndAnnounced, DaemonSpoke,
                           TimePassed>;

struct LaunchDaemon {
  Attempt attempt;
};
struct KillDaemon {};  // the daemon hangs
struct KillShim {};    // the shim should have killed the daemon and does not answer
struct ReportOnJob {   // explains in agent.log why a run is silent
  std::string text;
};
// No daemon is started again. `why` begins with "its job daemon", and is kept where the commands of
// antdt find it, since the processes that end now write more into agent.log.
struct GiveUpJob {
  std::string why;
};
using Effect = std::variant<LaunchDaemon, KillDaemon, KillShim, ReportOnJob, GiveUpJob>;
using Effects = std::vector<Effect>;

class JobKeeper {
 public:
  enum class State { kIdle, kUp, kKilling, kRestarting, kOver, kGaveUp };
  // 0: a job daemon may be silent for any time.
  explicit JobKeeper(Duration hung_after = {}) : hung_after_(hung_after) {}

  void step(const Input& input, MonoTime now, Effects& out);
  [[nodiscard]] std::optional<MonoTime> next_wakeup() const;

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] Attempt attempt() const { return attempt_; }
  [[nodiscard]] bool ended() const { return state_ == State::kOver || state_ == State::kGaveUp; }

  static constexpr Duration kUnheard = std::chrono::minutes(5);
  static constexpr Duration kKillPatience = std::chrono::seconds(5);
  // A job daemon that announced the end says nothing more, but may still run the hooks of the last
  // events. Its agent ends it before this time is over (PrivateJob::daemon_detached).
  static constexpr Duration kAfterTheEnd = std::chrono::seconds(60);
  // A job daemon that lived at least this long was able to work, so it is started again at once.
  // One that dies sooner is started after growing pauses: its trouble (a full disk, keys that are
  // being replaced, lack of memory) may pass, and its workers go on training meanwhile.
  static constexpr Duration kSoon = std::chrono::seconds(2);
  static constexpr Duration kLongestPause = std::chrono::seconds(10);
  // The agent gives up after this time without a daemon that lived longer than kSoon.
  static constexpr Duration kPatience = std::chrono::minutes(10);
  // The agent gives up after this many crashes in a row, each within kSettled of the start:
  // whatever crashes the daemon (a message that is sent again, a record of its journal) will still
  // be there the next time.
  static constexpr std::size_t kMostCrashes = 10;
  static constexpr Duration kSettled = std::chrono::seconds(60);

 private:
  void on(const StartOrdered& input, MonoTime now, Effects& out);
  void on(const DaemonAdopted& input, MonoTime now, Effects& out);
  void on(const DaemonExited& input, MonoTime now, Effects& out);
  void on(const JobEndAnnounced& input, MonoTime now, Effects& out);
  void on(const DaemonSpoke& input, MonoTime now, Effects& out);
  void on(const TimePassed& input, MonoTime now, Effects& out);
  void launch(MonoTime now, Effects& out);
  void give_up(std::string why, Effects& out);
  void count(const ExitStatus& status, MonoTime now);
  // Why the job daemon is not started again; empty if it is.
  [[nodiscard]] std::string hopeless(MonoTime now) const;
  void check_invariants() const;

  State state_ = State::kIdle;
  Attempt attempt_;
  bool job_is_over_ = false;           // the job daemon announced it
  std::size_t deaths_ = 0;             // in a row, each soon after its start
  std::optional<MonoTime> row_since_;  // time of the first of them
  std::size_t crashes_ = 0;            // in a row, see kMostCrashes
  // empty: an earlier agent started the daemon, or it is the first
  std::optional<MonoTime> up_since_;
  MonoTime restart_at_{};
  Duration hung_after_;
  std::optional<MonoTime> heard_at_;  // when this job daemon was last heard, if ever
  MonoTime launched_at_{};
  MonoTime shim_killed_at_{};  // in kKilling: when the shim is killed if it is still there
};

}  // namespace antdt::antdtd::keeper
