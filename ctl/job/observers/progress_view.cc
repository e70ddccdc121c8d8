#include "ctl/job/observers/progress_view.h"

#include <algorithm>

namespace antdt::ctl {
namespace {
constexpr Duration kRecent = std::chrono::seconds(5);
}

void ProgressView::restore(std::uint64_t phase, std::optional<double> seconds,
                           std::optional<double> ended_seconds) {
  phase_ = phase;
  if (phase > 0) open_ = Open{seconds, {}};
  ended_seconds_ = ended_seconds;
  present_seconds_ = phase > 0 ? seconds : 0;
}

void ProgressView::begin_phase(std::uint64_t phase, MonoTime now) {
  phase_ = phase;
  open_ = Open{0, now};
  present_seconds_ = 0;
  best_ = {};
  recent_.clear();
  recent_.push_back({now, {}});
}

void ProgressView::resume_phase(std::uint64_t phase, MonoTime now) {
  const std::optional<double> before = open_phase() == phase ? phase_seconds(now) : std::nullopt;
  phase_ = phase;
  open_ = Open{before, now};
  present_seconds_ = before;
  best_ = {};
  recent_.clear();
}

void ProgressView::reopen_phase(std::uint64_t phase, std::optional<double> seconds, MonoTime now) {
  if (ended_seconds_ && seconds) *ended_seconds_ -= *seconds;
  phase_ = phase;
  open_ = Open{seconds, now};
  present_seconds_ = seconds;
}

void ProgressView::update(const wire::Progress& progress, MonoTime now) {
  step_ = std::max(step_, progress.step);
  if (progress.phase != phase_ || progress.samples <= best_.samples) return;
  best_ = progress;
  if (open_) present_seconds_ = phase_seconds(now);
  recent_.push_back({now, progress});
  while (recent_.size() > 2 && recent_[1].when + kRecent < now) recent_.pop_front();
}

void ProgressView::leave_out_of_recent(const wire::Progress& part) {
  for (Point& point : recent_) {
    point.progress.samples += part.samples;
    point.progress.loss_sum += part.loss_sum;
    point.progress.weight_sum += part.weight_sum;
  }
}

std::optional<double> ProgressView::end_phase(MonoTime now) {
  if (!open_) return std::nullopt;
  const std::optional<double> seconds = phase_seconds(now);
  ended_seconds_ =
      ended_seconds_ && seconds ? std::optional(*ended_seconds_ + *seconds) : std::nullopt;
  present_seconds_ = 0;
  open_.reset();
  return seconds;
}

std::optional<double> ProgressView::training_seconds() const {
  if (!ended_seconds_ || !present_seconds_) return std::nullopt;
  return *ended_seconds_ + *present_seconds_;
}

void ProgressView::forget() {
  best_ = {};
  recent_.clear();
  step_ = {};
}

std::optional<double> ProgressView::phase_loss() const {
  if (!(best_.weight_sum > 0)) return std::nullopt;
  return best_.loss_sum / best_.weight_sum;
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

std::optional<double> ProgressView::phase_seconds(MonoTime now) const {
  if (!open_ || !open_->seconds_before) return std::nullopt;
  return *open_->seconds_before + (open_->since ? to_seconds(now - *open_->since) : 0);
}

}  // namespace antdt::ctl
