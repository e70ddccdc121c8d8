// The training state of an engine whose arrays lie in a device's memory, and its copy in the host's
// memory, which is made when somebody asks for it.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trainer/loop/state/device_state.h"
#include "trainer/torch/buffers.h"
#include "trainer/torch/device/device_optimizer.h"
#include "trainer/torch/device/queue.h"
#include "trainer/torch/device/state/digest.h"
#include "trainer/torch/state_file.h"

namespace antdt::trainer {

class StateOnDevice final : public DeviceState {
 public:
  // The flat parameters and their gradient, the optimizer and the model's buffers, which all must
  // outlive this object.
  StateOnDevice(torch::Tensor values, torch::Tensor gradients, DeviceOptimizer& optimizer,
                Buffers& buffers);

  // ---------------------------------------------------------------- in the host's memory
  // A device that has failed makes copies throw; a later one is made anew.
  // The arrays there are those of the device, which is waited for.
  void copy_to_host();
  // The arrays of the device are those of the host.
  void copy_to_device();
  [[nodiscard]] std::vector<StateArray> on_host() const;
  // The arrays of the device, or those of the host, have been changed alone.
  void differs() { same_ = false; }

  // ---------------------------------------------------------------- DeviceState
  [[nodiscard]] std::vector<DeviceBytes> arrays() override;
  [[nodiscard]] std::vector<std::span<std::byte>> rest() override;
  [[nodiscard]] DeviceStream stream() override { return queue_.handle(); }
  [[nodiscard]] Result<std::vector<std::uint64_t>> digests() override;
  void keep() override { copy_to_host(); }
  void give_back() override { copy_to_device(); }
  void replaced() override;

 private:
  // The parameters, then what the optimizer remembers.
  [[nodiscard]] std::vector<torch::Tensor> tensors() const;

  torch::Tensor values_, gradients_;
  DeviceOptimizer& optimizer_;
  Buffers& buffers_;
  Queue queue_;
  std::optional<Digest> digest_;     // once it is needed
  std::vector<torch::Tensor> host_;  // like tensors(), once they are needed
  bool same_ = false;                // they are those of the device
};

}  // namespace antdt::trainer
