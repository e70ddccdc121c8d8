// A device, or the host, had no memory for a micro-batch: how that is recognised, and the evidence.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace antdt::trainer {

// Whether LibTorch, CUDA or C++ threw it for want of memory.
[[nodiscard]] bool is_out_of_memory(const std::exception& thrown);

// Bytes. What is not known is empty.
struct DeviceMemory {
  std::optional<std::uint64_t> free, total;  // of the device
  std::optional<std::uint64_t> in_use;       // by tensors of this process
};
[[nodiscard]] DeviceMemory memory_of(torch::Device device);
// Gives what no tensor uses back to the device.
void give_back_unused(torch::Device device);

struct MemoryShortage {
  std::string device;  // "cuda:0"
  std::uint64_t records = 0;
  std::optional<std::uint64_t> asked;  // bytes
  DeviceMemory memory;
};
// What `thrown` and the device say.
[[nodiscard]] MemoryShortage shortage_of(const std::exception& thrown, torch::Device device,
                                         std::uint64_t records);
// "out of memory on cuda:0 in a micro-batch of 512 records: 2147483648 bytes were asked for, …".
// The words "out of memory" are how the agent recognises the end of a process that says it last.
[[nodiscard]] std::string to_text(const MemoryShortage& shortage);
// "cuda:0 has no room for a micro-batch of 512 records: …; from now on micro-batches have at most
// 256 records here". Without those words, because the process may end much later, for another
// reason, with this among its last lines.
[[nodiscard]] std::string survived_text(const MemoryShortage& shortage, std::size_t most_records);
// "2.00 GiB" or "123 bytes" behind "ried to allocate "; empty: the text does not say it.
[[nodiscard]] std::optional<std::uint64_t> bytes_asked(std::string_view text);

}  // namespace antdt::trainer
