#include "ctl/job/metrics/scalars.h"

#include <algorithm>
#include <cmath>

#include "core/job_states.h"

namespace antdt::ctl {
namespace {

metrics::ScalarPoint point_of(const EpochReport::Eval& eval) {
  metrics::ScalarPoint point;
  const auto add = [&](const char* tag, const std::optional<double>& value) {
    if (value) point.values.emplace_back(tag, *value);
  };
  add("eval/auc", eval.auc);
  add("eval/log_loss", eval.log_loss);
  add("eval/accuracy", eval.accuracy);
  for (const wire::NamedSum& sum : eval.named) {
    point.values.emplace_back("sums/" + sum.name, sum.sum / static_cast<double>(eval.records));
  }
  return point;
}

}  // namespace

std::vector<metrics::ScalarPoint> Scalars::see(const JobReport& report, MonoTime now,
                                               double unix_seconds, bool is_last) {
  std::vector<metrics::ScalarPoint> points;
  const auto& epochs = report.epoch_reports;
  const auto add_epoch = [&](std::size_t index, metrics::ScalarPoint point) {
    point.unix_seconds = unix_seconds;
    point.step = static_cast<std::int64_t>(index + 1);
    points.push_back(std::move(point));
  };
  for (; epochs_ < epochs.size(); ++epochs_) {
    const double loss = epochs[epochs_].train_loss;
    if (std::isfinite(loss)) {
      add_epoch(epochs_, {0, 0, {{"epoch/train_loss", loss}}});
    } else if (epochs_ + 1 == epochs.size()) {
      break;  // it is the one that is trained now
    }
  }
  // An epoch is evaluated after its end, or not at all.
  for (std::size_t i = evaluated_; i < epochs.size(); ++i) {
    if (!epochs[i].eval) continue;
    add_epoch(i, point_of(*epochs[i].eval));
    evaluated_ = i + 1;
  }
  // Training may have gone back to a checkpoint, so another step is worth a point, too.
  if ((now < due_ && !is_last) || report.step == step_) return points;
  if (!began_) began_ = now;
  due_ = now + std::max(kInterval, (now - *began_) / kShare);
  step_ = report.step;
  metrics::ScalarPoint point{unix_seconds, static_cast<std::int64_t>(report.step.value), {}};
  if (report.train_loss) point.values.emplace_back("train/loss", *report.train_loss);
  point.values.emplace_back("train/samples_per_second", report.samples_per_second);
  point.values.emplace_back("train/epoch", report.epoch + 1);
  const auto joined =
      std::ranges::count(report.workers, ProcessState::kJoined, &WorkerReport::state);
  point.values.emplace_back("job/workers", static_cast<double>(joined));
  point.values.emplace_back("job/generation", static_cast<double>(report.generation.value));
  points.push_back(std::move(point));
  return points;
}

}  // namespace antdt::ctl
