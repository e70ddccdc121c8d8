// A device's queues of work, and points in them. On a processor there are none: what was asked for
// is done when the call returns, and a point is reached at once.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <torch/torch.h>
#include <torch/version.h>

#include <chrono>
#include <optional>

#include "core/clock.h"

namespace antdt::trainer {

// LibTorch 1 can compute here on a processor only: its events cannot be waited for.
#if TORCH_VERSION_MAJOR >= 2
inline constexpr bool kHasDevices = true;
#else
inline constexpr bool kHasDevices = false;
#endif

// A queue of a device, in which work is done in the order in which it was put there.
class Queue {
 public:
  // The queue in which models are computed, or one of those beside it.
  enum class Kind { kCompute, kBeside };
  Queue(torch::Device device, Kind kind);

  [[nodiscard]] torch::Device device() const { return device_; }
  [[nodiscard]] const std::optional<c10::Stream>& stream() const { return stream_; }
  // What the device's own library calls it, a cudaStream_t; null on a processor.
  [[nodiscard]] void* handle() const;

 private:
  torch::Device device_;
  std::optional<c10::Stream> stream_;  // none on a processor
};

// While it lives, what this thread asks of LibTorch is put into that queue.
class InQueue {
 public:
  explicit InQueue(const Queue& queue) {
    if (queue.stream()) guard_.emplace(*queue.stream());
  }

 private:
  std::optional<c10::StreamGuard> guard_;
};

// A point in a queue. It may be set again, which forgets the one before. One thread at a time.
class Mark {
 public:
  // `timed`: the time between two of them can be asked for.
  explicit Mark(torch::Device device, bool timed = false);

  void set(const Queue& queue);
  // What is put into `queue` from now on begins after this point.
  void hold_up(const Queue& queue) const;
  // Blocks the calling thread until the device has come to this point.
  void wait() const;
  [[nodiscard]] bool reached() const;
  // Both must be timed and reached.
  [[nodiscard]] Duration since(const Mark& earlier) const;

 private:
  std::optional<c10::Event> event_;  // none on a processor
  MonoTime at_{};                    // on a processor
};

}  // namespace antdt::trainer
