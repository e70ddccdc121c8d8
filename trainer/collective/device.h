// The operations of a group on memory of its members' accelerators.
//
// What is enqueued runs in the caller's stream, behind what is there already, and the call returns
// before it is done. Every member enqueues the same operations in the same order. Errors are those
// of Collective, and after one the whole collective is dead; abort() of the collective ends these
// calls, too. Once a call has failed, what was enqueued no longer writes to memory; if that cannot
// be had, the error is kInternal, and the process has to end before that memory is used again.
// Memory and streams exist until finish() has returned, a call has failed, or the collective is
// gone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/result.h"

namespace antdt::trainer {

enum class DeviceType : std::uint8_t { kFloat32, kFloat64, kFloat16, kBfloat16 };

[[nodiscard]] constexpr std::size_t bytes_of(DeviceType type) {
  if (type == DeviceType::kFloat64) return 8;
  return type == DeviceType::kFloat32 ? 4 : 2;
}

struct DeviceSpan {
  void* data = nullptr;
  std::size_t count = 0;  // elements
  DeviceType type{};
};
struct DeviceBytes {
  void* data = nullptr;
  std::size_t size = 0;
};
// The handle of a stream: cudaStream_t of the runtime that the members use.
using DeviceStream = void*;

class DeviceCollective {
 public:
  virtual ~DeviceCollective() = default;

  // Every element becomes the sum of that element over all members, with the same bits on each.
  [[nodiscard]] virtual Status enqueue_sum(DeviceSpan values, DeviceStream stream) = 0;

  // Bytes along the ring, as Collective's. Not for size 1.
  [[nodiscard]] virtual Status enqueue_send_right(DeviceBytes bytes, DeviceStream stream) = 0;
  [[nodiscard]] virtual Status enqueue_receive_left(DeviceBytes bytes, DeviceStream stream) = 0;

  // Blocks until the streams have done all that is in them, if anything was enqueued here since the
  // last time.
  [[nodiscard]] virtual Status finish() = 0;
};

}  // namespace antdt::trainer
