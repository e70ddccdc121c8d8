#include "trainer/nccl/staged_device.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/clock.h"
#include "trainer/nccl/half.h"

namespace antdt::nccl {

using trainer::DeviceBytes;
using trainer::DeviceSpan;
using trainer::DeviceStream;
using trainer::DeviceType;

namespace {

constexpr std::size_t kPieceBytes = 4 * 1024 * 1024;
constexpr Duration kFirstPause = std::chrono::microseconds(10);
constexpr Duration kLastPause = std::chrono::milliseconds(1);

}  // namespace

StagedDevice::~StagedDevice() {
  if (event_ != nullptr) cuda_->destroy_event(event_);
}

void StagedDevice::abort() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  changed_.notify_all();
}

template <class T>
std::span<T> StagedDevice::staging(std::size_t count) {
  const std::size_t words = (count * sizeof(T) + sizeof(double) - 1) / sizeof(double);
  if (memory_.size() < words) memory_.resize(words);
  return {reinterpret_cast<T*>(memory_.data()), count};
}

Status StagedDevice::begin() {
  ANTDT_RETURN_IF_ERROR(cuda_->use(device_));
  if (event_ == nullptr) {
    ANTDT_TRY(event_, cuda_->make_event());
  }
  return {};
}

Status StagedDevice::copy_and_wait(void* to, const void* from, std::size_t bytes,
                                   DeviceStream stream) {
  ANTDT_RETURN_IF_ERROR(cuda_->copy(to, from, bytes, stream));
  ANTDT_RETURN_IF_ERROR(cuda_->record(event_, stream));
  std::unique_lock lock(mutex_);
  for (Duration pause = kFirstPause;; pause = std::min(2 * pause, kLastPause)) {
    ANTDT_TRY(const Work work, cuda_->query(event_));
    if (work == Work::kDone) return {};
    changed_.wait_for(lock, pause, [this] { return aborted_; });
    if (aborted_) return fail(ErrorKind::kAborted, "waiting for the device was aborted");
  }
}

Status StagedDevice::enqueue_sum(DeviceSpan values, DeviceStream stream) {
  ANTDT_RETURN_IF_ERROR(begin());
  const std::size_t size = bytes_of(values.type);
  for (std::size_t at = 0; at < values.count; at += kPieceBytes / size) {
    const std::size_t count = std::min(kPieceBytes / size, values.count - at);
    ANTDT_RETURN_IF_ERROR(
        sum_piece(values.type, static_cast<std::byte*>(values.data) + at * size, count, stream));
  }
  return {};
}

Status StagedDevice::sum_piece(DeviceType type, void* on_device, std::size_t count,
                               DeviceStream stream) {
  const std::size_t bytes = count * bytes_of(type);
  void* const here = staging<std::byte>(bytes).data();
  ANTDT_RETURN_IF_ERROR(copy_and_wait(here, on_device, bytes, stream));
  if (type == DeviceType::kFloat64) {
    ANTDT_RETURN_IF_ERROR(host_.allreduce_sum(staging<double>(count)));
  } else if (type == DeviceType::kFloat32) {
    ANTDT_RETURN_IF_ERROR(host_.allreduce_sum(staging<float>(count)));
  } else {
    const bool is_bfloat = type == DeviceType::kBfloat16;
    const std::span<std::uint16_t> halves = staging<std::uint16_t>(count);
    widened_.resize(count);
    std::transform(halves.begin(), halves.end(), widened_.begin(),
                   is_bfloat ? from_bfloat16 : from_float16);
    ANTDT_RETURN_IF_ERROR(host_.allreduce_sum(std::span<float>(widened_)));
    std::transform(widened_.begin(), widened_.end(), halves.begin(),
                   is_bfloat ? to_bfloat16 : to_float16);
  }
  return copy_and_wait(on_device, here, bytes, stream);
}

Status StagedDevice::enqueue_send_right(DeviceBytes bytes, DeviceStream stream) {
  ANTDT_RETURN_IF_ERROR(begin());
  for (std::size_t at = 0; at < bytes.size; at += kPieceBytes) {
    const std::span<std::byte> here = staging<std::byte>(std::min(kPieceBytes, bytes.size - at));
    ANTDT_RETURN_IF_ERROR(
        copy_and_wait(here.data(), static_cast<std::byte*>(bytes.data) + at, here.size(), stream));
    ANTDT_RETURN_IF_ERROR(host_.send_right(here));
  }
  return {};
}

Status StagedDevice::enqueue_receive_left(DeviceBytes bytes, DeviceStream stream) {
  ANTDT_RETURN_IF_ERROR(begin());
  for (std::size_t at = 0; at < bytes.size; at += kPieceBytes) {
    const std::span<std::byte> here = staging<std::byte>(std::min(kPieceBytes, bytes.size - at));
    ANTDT_RETURN_IF_ERROR(host_.receive_left(here));
    ANTDT_RETURN_IF_ERROR(
        copy_and_wait(static_cast<std::byte*>(bytes.data) + at, here.data(), here.size(), stream));
  }
  return {};
}

}  // namespace antdt::nccl
