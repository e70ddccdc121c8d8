#include "ctl/job/observers/progress_view.h"

#include <algorithm>

namespace antdt::ctl {
namespace {
constexpr Duration kRecent = std::chrono::seconds(5);
}

void ProgressView::begin_phase(std::uint64_t phase, MonoTime now) {
  phase_ = phase;
  began_ = now;
  best_ = {};
  recent_.clear();
  recent_.push_back({now, {}});
}

void ProgressView::update(const wire::Progress& progress, MonoTime now) {
  step_ = std::max(step_, progress.step);
  if (progress.phase != phase_ || progress.samples <= best_.samples) return;
  best_ = progress;
  recent_.push_back({now, progress});
  while (recent_.size() > 2 && recent_[1].when + kRecent < now) recent_.pop_front();
}

void ProgressView::end_phase(MonoTime now) { training_seconds_ += phase_seconds(now); }

double ProgressView::phase_loss() const {
  return best_.weight_sum > 0 ? best_.loss_sum / best_.weight_sum : 0;
}

std::optional<double> ProgressView::recent_loss() const {
  if (recent_.size() < 2) return std::nullopt;
  const wire::Progress& from = recent_.front().progress;
  const double weight = best_.weight_sum - from.weight_sum;
  if (weight <= 0) return std::nullopt;
  return (best_.loss_sum - from.loss_sum) / weight;
}

double ProgressView::samples_per_second() const {
  if (recent_.size() < 2) return 0;
  const double seconds = to_seconds(recent_.back().when - recent_.front().when);
  const std::uint64_t samples = best_.samples - recent_.front().progress.samples;
  return seconds > 0 ? static_cast<double>(samples) / seconds : 0;
}

double ProgressView::phase_seconds(MonoTime now) const { return to_seconds(now - began_); }

}  // namespace antdt::ctl
