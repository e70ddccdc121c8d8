// Whether a private agent starts its job daemon again: a value, no I/O.
//
//   idle ── start ──> up ── exited 0,1,2,3,4,75 ──> over
//                      │ anything else (killed by us, if it was heard and then was
//                      │ silent for `hung_after`)
//                      v
//                   restarting ── after a pause ──> up
//                      │ it cannot be executed
//                      v
//                    gave up
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "antdtd/process_key.h"
#include "core/clock.h"

namespace antdt::antdtd {

class JobKeeper {
 public:
  enum class State { kIdle, kUp, kRestarting, kOver, kGaveUp };
  struct Decision {
    bool launch = false;  // start it now, as `attempt()`
    std::string note{};   // what happened, for the log; may be empty
    bool kill = false;    // it hangs
  };
  // 0: a job daemon may be silent as long as it likes.
  explicit JobKeeper(Duration hung_after = {}) : hung_after_(hung_after) {}

  [[nodiscard]] Decision start();
  // A job daemon that an earlier agent started runs as `attempt`.
  void adopt(Attempt attempt);
  [[nodiscard]] Decision exited(const ExitStatus& status, MonoTime now);
  // The job daemon said that the job is over: its end, however, is the last.
  void job_is_over() { last_ = true; }
  // It said something. One that never does (it has agents of its own) cannot be
  // said to hang.
  void heard(MonoTime now) { heard_at_ = now; }
  [[nodiscard]] Decision tick(MonoTime now);
  [[nodiscard]] std::optional<MonoTime> next_wakeup() const;

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] Attempt attempt() const { return attempt_; }
  [[nodiscard]] bool ended() const { return state_ == State::kOver || state_ == State::kGaveUp; }

  // One that lived longer was able to do its work: it is started again at once.
  // One that dies sooner is tried after growing pauses, and for ever: what ails it
  // (a full disk, a machine short of memory) may pass, and its workers train on.
  static constexpr Duration kSoon = std::chrono::seconds(2);
  static constexpr Duration kLongestPause = std::chrono::seconds(10);

 private:
  State state_ = State::kIdle;
  Attempt attempt_;
  bool last_ = false;
  std::size_t deaths_ = 0;            // in a row, each soon after its start
  std::optional<MonoTime> up_since_;  // nullopt: an earlier agent started it, or the first
  MonoTime restart_at_{};
  Duration hung_after_;
  std::optional<MonoTime> heard_at_;  // by this one, if at all
};

}  // namespace antdt::antdtd
