// How far training is and how fast, from the members' Progress messages. It is for people and for
// the end of epochs, never for the accounts. Pure.
#pragma once

#include <deque>
#include <optional>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/training_messages.h"

namespace antdt::ctl {

class ProgressView {
 public:
  // What the journal holds of an earlier incarnation. `seconds`, of the open phase (0: none is
  // open), and `ended_seconds` are empty if the journal does not say them. The phase stands still
  // until it goes on.
  void restore(std::uint64_t phase, std::optional<double> seconds,
               std::optional<double> ended_seconds);
  void begin_phase(std::uint64_t phase, MonoTime now);
  // This incarnation goes on with the phase. What its first report counts was trained before, so it
  // says nothing of the speed.
  void resume_phase(std::uint64_t phase, MonoTime now);
  // Training goes on from a checkpoint of this phase, which took these seconds so far. They may
  // have been counted as those of a phase that is over.
  void reopen_phase(std::uint64_t phase, std::optional<double> seconds, MonoTime now);
  // Progress is cumulative within the phase, so the furthest member counts.
  void update(const wire::Progress& progress, MonoTime now);
  // A part of the progress that is told now for the first time was made at an unknown time.
  void leave_out_of_recent(const wire::Progress& part);
  // The open phase ended. Its seconds are added to ended_seconds(), and returned if they are known.
  std::optional<double> end_phase(MonoTime now);
  // What was trained is given up. The time that it took is not.
  void forget();

  [[nodiscard]] Step step() const { return step_; }
  [[nodiscard]] std::uint64_t samples_in_phase() const { return best_.samples; }
  [[nodiscard]] std::optional<double> phase_loss() const;   // weighted mean
  [[nodiscard]] std::optional<double> recent_loss() const;  // over the last few seconds
  [[nodiscard]] double samples_per_second() const;          // over the last few seconds
  [[nodiscard]] std::uint64_t open_phase() const { return open_ ? phase_ : 0; }
  // Of the open phase. Empty: not known.
  [[nodiscard]] std::optional<double> phase_seconds(MonoTime now) const;
  // Of the phases that are over. Empty: not known.
  [[nodiscard]] const std::optional<double>& ended_seconds() const { return ended_seconds_; }
  // These, and of the open phase those until the newest progress: as long as the samples took that
  // are known. Empty: not known.
  [[nodiscard]] std::optional<double> training_seconds() const;

 private:
  struct Point {
    MonoTime when;
    wire::Progress progress;
  };
  struct Open {
    std::optional<double> seconds_before;  // empty: not known
    std::optional<MonoTime> since;         // empty: it stands still
  };
  std::uint64_t phase_ = 0;
  std::optional<Open> open_;
  wire::Progress best_;
  std::deque<Point> recent_;
  Step step_;
  std::optional<double> ended_seconds_ = 0;
  std::optional<double> present_seconds_ = 0;  // of the open phase, until best_
};

}  // namespace antdt::ctl
