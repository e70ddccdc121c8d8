// Writes the job's curves for TensorBoard, if job.toml wants them: [metrics] tensorboard. Each
// incarnation of the job daemon has a file of its own in RUN/tensorboard, as TensorBoard expects it
// of programs that are started again. If a file cannot be written, only the curves are lost.
#pragma once

#include <memory>
#include <string>

#include "core/clock.h"
#include "core/os/rotating_file.h"
#include "ctl/job/metrics/scalars.h"

namespace antdt::jobd {

struct Shell;

class TensorboardDesk {
 public:
  explicit TensorboardDesk(Shell& shell) : shell_(shell) {}

  void tick();
  // Of a job that has ended: writes what is not written yet.
  void job_ended();

 private:
  void open();
  void look(bool is_last);
  // As the file has it.
  [[nodiscard]] std::string record_of(const metrics::ScalarPoint& point);
  void write(std::string bytes);

  Shell& shell_;
  ctl::Scalars scalars_;
  bool tells_restart_ = false;          // with the first point of the training
  std::shared_ptr<RotatingFile> file_;  // used by the thread of the run's records
  MonoTime look_at_{};
};

}  // namespace antdt::jobd
