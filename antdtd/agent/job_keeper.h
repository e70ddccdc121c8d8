// Whether a private agent starts its job daemon again: a value, no I/O.
//
//   idle ── start ──> up ── exited 0,1,2,3,4,75 ──> over
//                      │ silent for `hung_after`, or for kUnheard from its start ──> killing
//                      │ (it, and after kKillPatience and each time again its shim) ────┐
//                      │ exited with anything else                                      │
//                      v                                                                │
//                      <────────────────────────────────────────────────────────────────┘
//                   restarting ── after a pause ──> up
//                      │ it cannot be executed, crashes again and again, or
//                      v has not come up again for `kPatience`
//                    gave up
//
// A job daemon that is started again, and meets trouble before it can go on (keys that cannot be
// read, a predecessor that still holds its lock), ends with exit code 5 whatever the trouble is:
// see cmd/antdt-jobd/main.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "antdtd/shim/process_key.h"
#include "core/clock.h"

namespace antdt::antdtd {

class JobKeeper {
 public:
  enum class State { kIdle, kUp, kKilling, kRestarting, kOver, kGaveUp };
  struct Decision {
    bool launch = false;     // start it now, as `attempt()`
    std::string note{};      // what happened, for the log; may be empty
    bool kill = false;       // it hangs
    bool kill_shim = false;  // its shim, which was to kill it, does not answer
  };
  // 0: a job daemon may be silent as long as it likes.
  explicit JobKeeper(Duration hung_after = {}) : hung_after_(hung_after) {}

  [[nodiscard]] Decision start(MonoTime now);
  // A job daemon that an earlier agent started runs as `attempt`. It dials this one at once.
  void adopt(Attempt attempt, MonoTime now);
  [[nodiscard]] Decision exited(const ExitStatus& status, MonoTime now);
  // The job daemon said that the job is over: its end, however, is the last.
  void job_is_over() { last_ = true; }
  // It said something. One that has not done so yet may be reading its journal from a disk that
  // stands still: it has longer.
  void heard(MonoTime now) { heard_at_ = now; }
  [[nodiscard]] Decision tick(MonoTime now);
  [[nodiscard]] std::optional<MonoTime> next_wakeup() const;

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] Attempt attempt() const { return attempt_; }
  [[nodiscard]] bool ended() const { return state_ == State::kOver || state_ == State::kGaveUp; }

  static constexpr Duration kUnheard = std::chrono::minutes(5);
  static constexpr Duration kKillPatience = std::chrono::seconds(5);
  // One that lived longer was able to do its work: it is started again at once.
  // One that dies sooner is tried after growing pauses: what ails it (a full disk, keys that
  // are being replaced, a machine short of memory) may pass, and its workers train on meanwhile.
  static constexpr Duration kSoon = std::chrono::seconds(2);
  static constexpr Duration kLongestPause = std::chrono::seconds(10);
  // But not for ever: for so long none has lived longer.
  static constexpr Duration kPatience = std::chrono::minutes(10);
  // Crashes in a row, each sooner than kSettled after its start: what it meets each time (a
  // message that is sent again, a record of its journal) will be there the next time, too.
  static constexpr std::size_t kMostCrashes = 10;
  static constexpr Duration kSettled = std::chrono::seconds(60);

 private:
  void count(const ExitStatus& status, MonoTime now);
  // Why it is not tried again; empty: it is.
  [[nodiscard]] std::string hopeless(MonoTime now) const;

  State state_ = State::kIdle;
  Attempt attempt_;
  bool last_ = false;
  std::size_t deaths_ = 0;             // in a row, each soon after its start
  std::optional<MonoTime> row_since_;  // the first of them
  std::size_t crashes_ = 0;            // in a row, see kMostCrashes
  std::optional<MonoTime> up_since_;   // nullopt: an earlier agent started it, or the first
  MonoTime restart_at_{};
  Duration hung_after_;
  std::optional<MonoTime> heard_at_;  // of this one, if at all
  MonoTime launched_at_{};
  MonoTime shim_killed_at_{};  // kKilling: from then on, if it is still there
};

}  // namespace antdt::antdtd
