#include "trainer/torch/device/choice.h"

#include <dlfcn.h>

#include <array>

#include "trainer/torch/device/precision.h"
#include "trainer/torch/device/queue.h"

namespace antdt::trainer {
namespace {

// What keeps the job on a processor; empty: nothing.
std::string needs_processor(const TrainerConfig& config) {
  if (on_servers(config.sync)) {
    return fmt::format("trainer.sync = \"{}\": workers of parameter servers compute on a processor",
                       name_of(config.sync));
  }
  if (config.sync == SyncStrategy::kDsSync) {
    return "trainer.sync = \"ds-sync\": parameters are averaged in the host's memory";
  }
  if (config.sync == SyncStrategy::kGaia) {
    return "trainer.sync = \"gaia\": domains exchange updates in the host's memory";
  }
  if (config.embedding_gradients == "sparse") {
    return "trainer.embedding_gradients = \"sparse\": rows of the table are summed in the host's "
           "memory";
  }
  return {};
}

}  // namespace

Result<DeviceChoice> choose_device(const TrainerConfig& config, WorkerId worker,
                                   std::uint32_t found) {
  DeviceChoice choice;
  ANTDT_TRY(choice.precision, parse_precision(config.precision));
  const std::string processor = needs_processor(config);
  if (choice.precision && !processor.empty()) {
    return fail(ErrorKind::kUsage,
                "trainer.precision \"{}\" and {}: write trainer.precision = \"fp32\"",
                config.precision, processor);
  }
  if (config.device == "cpu") return choice;
  if (config.device == "auto") {
    if (found == 0 || !processor.empty()) return choice;
  } else if (config.device != "cuda") {
    return fail(ErrorKind::kUsage, "trainer.device '{}' is not known: use auto, cpu or cuda",
                config.device);
  }
  if (!processor.empty()) {
    return fail(ErrorKind::kUsage,
                "trainer.device = \"cuda\" and {}: write trainer.device = \"cpu\"", processor);
  }
  if (found == 0) {
    return fail(
        ErrorKind::kUsage, "trainer.device = \"cuda\", and this worker sees no CUDA device: {}",
        kHasDevices ? "look at nvidia-smi and CUDA_VISIBLE_DEVICES on its host, or write "
                      "trainer.device = \"auto\""
                    : "its antdt-trainer was built with LibTorch 1 for processors; build the "
                      "preset cuda (docs/programs/cuda.md), or write trainer.device = \"auto\"");
  }
  choice.device = torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(worker.index % found));
  return choice;
}

std::uint32_t cuda_devices() {
  if (!kHasDevices || !torch::cuda::is_available()) return 0;
  return static_cast<std::uint32_t>(torch::cuda::device_count());
}

std::string device_class(const DeviceChoice& choice) {
  if (choice.device.is_cpu()) return {};
  // The driver's library is there wherever LibTorch found a device, which has initialised it.
  using DeviceOf = int (*)(int* device, int ordinal);
  using NameOf = int (*)(char* name, int length, int device);
  std::array<char, 256> name{};
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return "cuda:unknown";
  const auto device_of = reinterpret_cast<DeviceOf>(dlsym(driver, "cuDeviceGet"));
  const auto name_of = reinterpret_cast<NameOf>(dlsym(driver, "cuDeviceGetName"));
  int device = 0;
  const bool known = device_of != nullptr && name_of != nullptr &&
                     device_of(&device, choice.device.index()) == 0 &&
                     name_of(name.data(), static_cast<int>(name.size()) - 1, device) == 0;
  return fmt::format("cuda:{}", known ? name.data() : "unknown");
}

}  // namespace antdt::trainer
