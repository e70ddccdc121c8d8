// The operations on memory of a device, through host memory: for groups that cannot use NCCL.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "trainer/collective/collective.h"
#include "trainer/nccl/load/cuda_runtime.h"

namespace antdt::nccl {

// Each operation is done when its call returns. 16-bit numbers are summed as floats, and rounded
// once.
class StagedDevice final : public trainer::DeviceCollective {
 public:
  // `host` carries what is copied from the device; it must outlive this object.
  StagedDevice(trainer::Collective& host, std::shared_ptr<CudaRuntime> cuda, int device)
      : host_(host), cuda_(std::move(cuda)), device_(device) {}
  ~StagedDevice() override;

  [[nodiscard]] Status enqueue_sum(trainer::DeviceSpan values,
                                   trainer::DeviceStream stream) override;
  [[nodiscard]] Status enqueue_send_right(trainer::DeviceBytes bytes,
                                          trainer::DeviceStream stream) override;
  [[nodiscard]] Status enqueue_receive_left(trainer::DeviceBytes bytes,
                                            trainer::DeviceStream stream) override;
  [[nodiscard]] Status finish() override { return {}; }

  // Ends waiting for the device with kAborted. From any thread; the caller aborts `host` as well.
  void abort();

 private:
  [[nodiscard]] Status begin();
  [[nodiscard]] Status sum_piece(trainer::DeviceType type, void* on_device, std::size_t count,
                                 trainer::DeviceStream stream);
  [[nodiscard]] Status copy_and_wait(void* to, const void* from, std::size_t bytes,
                                     trainer::DeviceStream stream);
  // Memory of the host for so many elements, which is reused.
  template <class T>
  [[nodiscard]] std::span<T> staging(std::size_t count);

  trainer::Collective& host_;
  const std::shared_ptr<CudaRuntime> cuda_;
  const int device_;
  Event event_ = nullptr;
  std::vector<double> memory_;
  std::vector<float> widened_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool aborted_ = false;
};

}  // namespace antdt::nccl
