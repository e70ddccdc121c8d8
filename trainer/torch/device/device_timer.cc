#include "trainer/torch/device/device_timer.h"

namespace antdt::trainer {

void DeviceTimer::begin() {
  drop();
  begun_ = points_->set();
}

void DeviceTimer::end() {
  if (!begun_) return;
  ended_.push_back({*begun_, points_->set()});
  begun_.reset();
}

void DeviceTimer::drop() {
  if (begun_) points_->free(*begun_);
  begun_.reset();
}

Duration DeviceTimer::take() {
  Duration sum{};
  while (!ended_.empty() && points_->reached(ended_.front().to)) {
    const Span span = ended_.front();
    ended_.pop_front();
    sum += points_->between(span.from, span.to);
    points_->free(span.from);
    points_->free(span.to);
  }
  return sum;
}

}  // namespace antdt::trainer
