// The curves of a job, for TensorBoard. Pure.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "core/metrics/event_file.h"
#include "ctl/job/report.h"

namespace antdt::ctl {

// Makes points of reports that follow one another. An epoch is reported once; a later incarnation
// of the job daemon, which begins with skip_past(), may report the newest one again.
class Scalars {
 public:
  // The shortest time between two points of what changes all the time. It grows with the time that
  // was seen, to a kShare of it, so that a job of months has some 30,000 points.
  static constexpr Duration kInterval = std::chrono::seconds(2);
  static constexpr int kShare = 5000;

  // The epochs in this report are in the files of earlier incarnations, but for the last one: the
  // incarnation before may have ended before it wrote that.
  void skip_past(const JobReport& report) {
    epochs_ = evaluated_ = std::max<std::size_t>(report.epoch_reports.size(), 1) - 1;
  }
  // Tags: train/loss, train/samples_per_second, train/epoch, job/workers, job/generation, and once
  // for each epoch, with the epoch's number as its step, epoch/train_loss and
  // eval/{auc,log_loss,accuracy}, sums/<name> (the program's own, by record), as far as the model
  // has them. `is_last`: the job has ended, so its last step is a point, too.
  [[nodiscard]] std::vector<metrics::ScalarPoint> see(const JobReport& report, MonoTime now,
                                                      double unix_seconds, bool is_last = false);

 private:
  std::size_t epochs_ = 0;     // how many have been reported
  std::size_t evaluated_ = 0;  // up to which one evaluations have been
  Step step_;                  // of the newest point
  std::optional<MonoTime> began_;
  MonoTime due_{};
};

}  // namespace antdt::ctl
