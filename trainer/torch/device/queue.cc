#include "trainer/torch/device/queue.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace antdt::trainer {
namespace {

std::optional<c10::Stream> stream_of(torch::Device device, Queue::Kind kind) {
  if (device.is_cpu()) return {};
  const c10::impl::VirtualGuardImpl backend(device.type());
  return kind == Queue::Kind::kCompute ? backend.getDefaultStream(device)
                                       : backend.getStreamFromGlobalPool(device);
}

}  // namespace

Queue::Queue(torch::Device device, Kind kind) : device_(device), stream_(stream_of(device, kind)) {}

void* Queue::handle() const {
#if TORCH_VERSION_MAJOR >= 2
  if (stream_) return stream_->native_handle();
#endif
  return nullptr;
}

Mark::Mark(torch::Device device, bool timed) {
  if (device.is_cpu()) return;
  event_.emplace(device.type(),
                 timed ? c10::EventFlag::BACKEND_DEFAULT : c10::EventFlag::PYTORCH_DEFAULT);
}

void Mark::set(const Queue& queue) {
  event_ ? event_->record(*queue.stream()) : void(at_ = SteadyClock().now());
}

void Mark::hold_up(const Queue& queue) const {
  if (event_) event_->block(*queue.stream());
}

void Mark::wait() const {
#if TORCH_VERSION_MAJOR >= 2
  if (event_) event_->synchronize();
#endif
}

bool Mark::reached() const { return !event_ || event_->query(); }

Duration Mark::since(const Mark& earlier) const {
#if TORCH_VERSION_MAJOR >= 2
  if (event_) {
    const std::chrono::duration<double, std::milli> time(earlier.event_->elapsedTime(*event_));
    return std::chrono::duration_cast<Duration>(time);
  }
#endif
  return at_ - earlier.at_;
}

}  // namespace antdt::trainer
