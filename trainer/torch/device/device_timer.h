// How long a device itself worked, without waiting for it. Pure, over points in its queue.
//
// begin() and end() set a point before and after some work that is put into the queue. take() adds
// up the spans whose end the device has passed; a later call has the others. The host's clock
// cannot tell this time, because it sees only when work was put into the queue.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "core/clock.h"

namespace antdt::trainer {

// Where points come from: a device's queue, or a test.
class TimedPoints {
 public:
  using Point = std::size_t;  // a number of its own, free to be used again after free()
  virtual ~TimedPoints() = default;
  [[nodiscard]] virtual Point set() = 0;
  [[nodiscard]] virtual bool reached(Point point) const = 0;
  [[nodiscard]] virtual Duration between(Point from, Point to) const = 0;
  virtual void free(Point point) = 0;
};

class DeviceTimer {
 public:
  explicit DeviceTimer(std::unique_ptr<TimedPoints> points) : points_(std::move(points)) {}

  void begin();  // a span that was begun and not ended is dropped
  void end();
  void drop();  // the span that was begun
  // Of the spans that have passed since the last call, in their order.
  [[nodiscard]] Duration take();

 private:
  struct Span {
    TimedPoints::Point from = 0, to = 0;
  };
  std::unique_ptr<TimedPoints> points_;
  std::deque<Span> ended_;
  std::optional<TimedPoints::Point> begun_;
};

}  // namespace antdt::trainer
