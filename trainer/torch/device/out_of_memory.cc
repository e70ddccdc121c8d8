#include "trainer/torch/device/out_of_memory.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <new>
#include <utility>

// From this version on, LibTorch asks any device's allocator in the same way.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 9)
#define ANTDT_TORCH_ASKS_ALLOCATORS 1
#include <c10/core/CachingDeviceAllocator.h>
#endif

namespace antdt::trainer {
namespace {

// In errors that have no type of their own for this: of LibTorch's allocator for a processor, and
// of CUDA and its libraries, which take a device's memory for handles and for kernels that are
// loaded at their first use, past LibTorch's allocator.
constexpr std::array<std::string_view, 6> kSaidForWantOfMemory = {
    "can't allocate memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",  // from cuDNN 9 on
    "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
};

// ": 1000 bytes were asked for; of the device's 3000 bytes, 200 are free; …", as far as it is
// known.
std::string evidence_of(const MemoryShortage& shortage) {
  std::string text;
  if (shortage.asked) text += fmt::format(": {} bytes were asked for", *shortage.asked);
  const DeviceMemory& memory = shortage.memory;
  if (memory.free && memory.total) {
    text += fmt::format("; of the device's {} bytes, {} are free", *memory.total, *memory.free);
  }
  if (memory.in_use) text += fmt::format("; tensors of this process use {}", *memory.in_use);
  return text;
}

}  // namespace

bool is_out_of_memory(const std::exception& thrown) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&thrown) != nullptr) return true;
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr) return true;
  const auto* error = dynamic_cast<const c10::Error*>(&thrown);
  if (error == nullptr) return false;
  const std::string_view text = error->what_without_backtrace();
  return std::ranges::any_of(kSaidForWantOfMemory, [text](std::string_view words) {
    return text.find(words) != std::string_view::npos;
  });
}

#ifdef ANTDT_TORCH_ASKS_ALLOCATORS
namespace {

// Not each of these versions can tell what is free.
template <class Allocator>
void ask_free(Allocator& allocator, torch::Device device, DeviceMemory& memory) {
  if constexpr (requires { allocator.getMemoryInfo(device.index()); }) {
    const auto [free, total] = allocator.getMemoryInfo(device.index());
    memory.free = free;
    memory.total = total;
  }
}

}  // namespace
#endif

DeviceMemory memory_of(torch::Device device) {
  DeviceMemory memory;
#ifdef ANTDT_TORCH_ASKS_ALLOCATORS
  if (device.is_cpu()) return memory;
  try {
    auto* const allocator = at::getDeviceAllocator(device.type());
    memory.in_use = static_cast<std::uint64_t>(
        allocator->getDeviceStats(device.index()).allocated_bytes[0].current);
    ask_free(*allocator, device, memory);
  } catch (const std::exception&) {
    return memory;  // evidence that cannot be had
  }
#else
  static_cast<void>(device);
#endif
  return memory;
}

void give_back_unused(torch::Device device) {
#ifdef ANTDT_TORCH_ASKS_ALLOCATORS
  if (!device.is_cpu()) at::getDeviceAllocator(device.type())->emptyCache();
#else
  static_cast<void>(device);
#endif
}

std::optional<std::uint64_t> bytes_asked(std::string_view text) {
  constexpr std::string_view kBefore = "ried to allocate ";
  constexpr std::array<std::pair<std::string_view, double>, 4> kUnits = {
      {{"bytes", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}};
  const auto at = text.find(kBefore);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + kBefore.size());
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  for (const auto& [unit, factor] : kUnits) {
    if (text.starts_with(unit)) return static_cast<std::uint64_t>(number * factor);
  }
  return {};
}

MemoryShortage shortage_of(const std::exception& thrown, torch::Device device,
                           std::uint64_t records) {
  const auto* error = dynamic_cast<const c10::Error*>(&thrown);
  const std::string text = error != nullptr ? error->what_without_backtrace() : thrown.what();
  return {device.str(), records, bytes_asked(text), memory_of(device)};
}

std::string to_text(const MemoryShortage& shortage) {
  return fmt::format("out of memory on {} in a micro-batch of {} records{}", shortage.device,
                     shortage.records, evidence_of(shortage));
}

std::string survived_text(const MemoryShortage& shortage, std::size_t most_records) {
  return fmt::format(
      "{} has no room for a micro-batch of {} records{}; from now on micro-batches have at most {} "
      "records here",
      shortage.device, shortage.records, evidence_of(shortage), most_records);
}

}  // namespace antdt::trainer
