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
//                     come up again for kPatience──> gave up
//
// A job daemon that is started again, and meets trouble before it can go on (keys that cannot be
// read, a predecessor that still holds its lock), ends with exit code 5 whatever the trouble is:
// see cmd/antdt-jobd/main.cc.
//
// Nothing is durable here: what an earlier agent started is found in its store (DaemonAdopted).
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
// A job daemon that an earlier agent started runs as `attempt`. It dials this one at once.
struct DaemonAdopted {
  Attempt attempt;
};
struct DaemonExited {
  ExitStatus status;
};
// The job daemon said that the job is over: its next end, however it comes, is the last.
struct JobEndAnnounced {};
// The job daemon said something. One that has not done so yet may be reading its journal from a
// disk that stands still: it has longer.
struct DaemonSpoke {};
struct TimePassed {};
using Input = std::variant<StartOrdered, DaemonAdopted, DaemonExited, JobEndAnnounced, DaemonSpoke,
                           TimePassed>;

struct LaunchDaemon {
  Attempt attempt;
};
struct KillDaemon {};  // it hangs
struct KillShim {};    // which was to kill it and does not answer
struct ReportOnJob {   // to whoever looks why a run is silent
  std::string text;
};
using Effect = std::variant<LaunchDaemon, KillDaemon, KillShim, ReportOnJob>;
using Effects = std::vector<Effect>;

class JobKeeper {
 public:
  enum class State { kIdle, kUp, kKilling, kRestarting, kOver, kGaveUp };
  // 0: a job daemon may be silent as long as it likes.
  explicit JobKeeper(Duration hung_after = {}) : hung_after_(hung_after) {}

  void step(const Input& input, MonoTime now, Effects& out);
  [[nodiscard]] std::optional<MonoTime> next_wakeup() const;

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] Attempt attempt() const { return attempt_; }
  [[nodiscard]] bool ended() const { return state_ == State::kOver || state_ == State::kGaveUp; }

  static constexpr Duration kUnheard = std::chrono::minutes(5);
  static constexpr Duration kKillPatience = std::chrono::seconds(5);
  // A job daemon that lived longer was able to do its work: it is started again at once. One that
  // dies sooner is started after growing pauses: its trouble (a full disk, keys that are being
  // replaced, a machine short of memory) may pass, and its workers train on meanwhile.
  static constexpr Duration kSoon = std::chrono::seconds(2);
  static constexpr Duration kLongestPause = std::chrono::seconds(10);
  // After so long without one that lived longer the agent gives up.
  static constexpr Duration kPatience = std::chrono::minutes(10);
  // Crashes in a row, each sooner than kSettled after its start, after which the agent gives up:
  // what the job daemon meets each time (a message that is sent again, a record of its journal)
  // will be there the next time, too.
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
  void count(const ExitStatus& status, MonoTime now);
  // Why the job daemon is not started again; empty: it is.
  [[nodiscard]] std::string hopeless(MonoTime now) const;
  void check_invariants() const;

  State state_ = State::kIdle;
  Attempt attempt_;
  bool job_is_over_ = false;           // the job daemon said so
  std::size_t deaths_ = 0;             // in a row, each soon after its start
  std::optional<MonoTime> row_since_;  // the first of them
  std::size_t crashes_ = 0;            // in a row, see kMostCrashes
  std::optional<MonoTime> up_since_;   // nullopt: an earlier agent started it, or it is the first
  MonoTime restart_at_{};
  Duration hung_after_;
  std::optional<MonoTime> heard_at_;  // of this job daemon, if it spoke at all
  MonoTime launched_at_{};
  MonoTime shim_killed_at_{};  // kKilling: when the shim is killed, if it is still there
};

}  // namespace antdt::antdtd::keeper
