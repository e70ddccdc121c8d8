#include "jobd/monitoring/tensorboard_desk.h"

#include <chrono>
#include <tuple>
#include <utility>

#include "core/log/log.h"
#include "core/os/fs.h"
#include "jobd/shell.h"

namespace antdt::jobd {
namespace {

constexpr Duration kCurvesEvery = std::chrono::seconds(1);
// More than the points of a month; what is beyond it replaces the oldest.
constexpr std::uint64_t kMostBytesOfCurves = 64ULL << 20;

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

void TensorboardDesk::tick() {
  if (!shell_.config.metrics.tensorboard || shell_.loop.now() < look_at_) return;
  look_at_ = shell_.loop.now() + kCurvesEvery;
  look(false);
}

void TensorboardDesk::job_ended() {
  if (shell_.config.metrics.tensorboard) look(true);
}

void TensorboardDesk::look(bool is_last) {
  if (!file_) open();
  std::string bytes;
  for (const metrics::ScalarPoint& point :
       scalars_.see(shell_.report(), shell_.loop.now(), unix_seconds(), is_last)) {
    bytes += record_of(point);
  }
  if (!bytes.empty()) write(std::move(bytes));
}

// An earlier incarnation may have told later steps, before the job went back to a checkpoint.
std::string TensorboardDesk::record_of(const metrics::ScalarPoint& point) {
  const bool trains = !point.values.empty() && point.values.front().first.starts_with("train/");
  std::string record;
  if (trains && std::exchange(tells_restart_, false)) {
    record = metrics::event_restart(point.unix_seconds, point.step);
  }
  return record + metrics::event_record(point);
}

// The names of TensorBoard's files sort by the time at which they were begun.
void TensorboardDesk::open() {
  const double now = unix_seconds();
  const std::string directory = shell_.options.run_dir + "/tensorboard";
  file_ = std::make_shared<RotatingFile>(
      fmt::format("{}/events.out.tfevents.{:010.0f}.{}.{}", directory, now, shell_.config.job.id,
                  shell_.turns.incarnation()),
      kMostBytesOfCurves);
  // Only what stood by begins on a host without the files of earlier incarnations.
  const bool is_first = shell_.turns.incarnation() == Incarnation{1} || shell_.options.standby;
  tells_restart_ = !is_first;
  if (!is_first) scalars_.skip_past(shell_.report());
  write(metrics::event_file_head(now));
}

void TensorboardDesk::write(std::string bytes) {
  std::ignore = shell_.disks.records().offer(
      "writing TensorBoard's file", [file = file_, bytes = std::move(bytes)] {
        const std::string directory = file->path().substr(0, file->path().rfind('/'));
        Status written = make_directories(directory, 0700);
        if (written) written = file->append(bytes);
        if (!written) log_warn("{}", written.error().message);
        return DiskThread::Then();
      });
}

}  // namespace antdt::jobd
