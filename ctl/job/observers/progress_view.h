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
  void begin_phase(std::uint64_t phase, MonoTime now);
  // Progress is cumulative within the phase, so the furthest member counts.
  void update(const wire::Progress& progress, MonoTime now);
  // The phase ended. Its seconds are added to training_seconds().
  void end_phase(MonoTime now);

  [[nodiscard]] Step step() const { return step_; }
  [[nodiscard]] std::uint64_t samples_in_phase() const { return best_.samples; }
  [[nodiscard]] double phase_loss() const;                  // weighted mean; 0 without samples
  [[nodiscard]] std::optional<double> recent_loss() const;  // over the last few seconds
  [[nodiscard]] double samples_per_second() const;          // over the last few seconds
  [[nodiscard]] double phase_seconds(MonoTime now) const;
  [[nodiscard]] double training_seconds() const { return training_seconds_; }

 private:
  struct Point {
    MonoTime when;
    wire::Progress progress;
  };
  std::uint64_t phase_ = 0;
  MonoTime began_{};
  wire::Progress best_;
  std::deque<Point> recent_;
  Step step_;
  double training_seconds_ = 0;
};

}  // namespace antdt::ctl
