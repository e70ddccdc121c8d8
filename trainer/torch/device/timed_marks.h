// Points of a device's queue for DeviceTimer.
#pragma once

#include <vector>

#include "trainer/torch/device/device_timer.h"
#include "trainer/torch/device/queue.h"

namespace antdt::trainer {

class TimedMarks final : public TimedPoints {
 public:
  // `queue` must outlive this object.
  explicit TimedMarks(const Queue& queue) : queue_(queue) {}

  [[nodiscard]] Point set() override {
    if (free_.empty()) {
      free_.push_back(marks_.size());
      marks_.emplace_back(queue_.device(), /*timed=*/true);
    }
    const Point point = free_.back();
    free_.pop_back();
    marks_[point].set(queue_);
    return point;
  }
  [[nodiscard]] bool reached(Point point) const override { return marks_[point].reached(); }
  [[nodiscard]] Duration between(Point from, Point to) const override {
    return marks_[to].since(marks_[from]);
  }
  void free(Point point) override { free_.push_back(point); }

 private:
  const Queue& queue_;
  std::vector<Mark> marks_;
  std::vector<Point> free_;
};

}  // namespace antdt::trainer
