// The CUDA runtime as a shared library that is loaded at run time.
#include <array>
#include <filesystem>

#include "core/accelerator/versions.h"
#include "trainer/nccl/load/cuda_runtime.h"
#include "trainer/nccl/load/shared_object.h"

namespace antdt::nccl {
namespace {

struct CudaFunctions {
  int (*runtime_version)(int*) = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*pci_bus_id)(char*, int length, int device) = nullptr;
  int (*set_device)(int) = nullptr;
  int (*allocate)(void**, std::size_t) = nullptr;
  int (*free)(void*) = nullptr;
  int (*stream_create)(Stream*, unsigned flags) = nullptr;
  int (*stream_destroy)(Stream) = nullptr;
  int (*copy)(void*, const void*, std::size_t, int kind, Stream) = nullptr;
  int (*event_create)(Event*, unsigned flags) = nullptr;
  int (*event_destroy)(Event) = nullptr;
  int (*event_record)(Event, Stream) = nullptr;
  int (*event_query)(Event) = nullptr;
  int (*last_error)() = nullptr;
};

Status find_cuda_functions(const SharedObject& object, CudaFunctions& found) {
  ANTDT_RETURN_IF_ERROR(object.find("cudaRuntimeGetVersion", found.runtime_version));
  ANTDT_RETURN_IF_ERROR(object.find("cudaGetErrorString", found.error_string));
  ANTDT_RETURN_IF_ERROR(object.find("cudaGetDeviceCount", found.device_count));
  ANTDT_RETURN_IF_ERROR(object.find("cudaDeviceGetPCIBusId", found.pci_bus_id));
  ANTDT_RETURN_IF_ERROR(object.find("cudaSetDevice", found.set_device));
  ANTDT_RETURN_IF_ERROR(object.find("cudaMalloc", found.allocate));
  ANTDT_RETURN_IF_ERROR(object.find("cudaFree", found.free));
  ANTDT_RETURN_IF_ERROR(object.find("cudaStreamCreateWithFlags", found.stream_create));
  ANTDT_RETURN_IF_ERROR(object.find("cudaStreamDestroy", found.stream_destroy));
  ANTDT_RETURN_IF_ERROR(object.find("cudaMemcpyAsync", found.copy));
  ANTDT_RETURN_IF_ERROR(object.find("cudaEventCreateWithFlags", found.event_create));
  ANTDT_RETURN_IF_ERROR(object.find("cudaEventDestroy", found.event_destroy));
  ANTDT_RETURN_IF_ERROR(object.find("cudaEventRecord", found.event_record));
  ANTDT_RETURN_IF_ERROR(object.find("cudaEventQuery", found.event_query));
  return object.find("cudaGetLastError", found.last_error);
}

class LoadedCuda final : public CudaRuntime {
 public:
  LoadedCuda(std::string name, const CudaFunctions& calls)
      : name_(std::move(name)), calls_(calls) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] Result<int> devices() override {
    int count = 0;
    ANTDT_RETURN_IF_ERROR(checked(calls_.device_count(&count), "counting the devices"));
    return count;
  }
  [[nodiscard]] Result<std::string> identity(int device) override {
    std::array<char, 64> text{};
    ANTDT_RETURN_IF_ERROR(
        checked(calls_.pci_bus_id(text.data(), static_cast<int>(text.size()) - 1, device),
                fmt::format("asking for the PCI address of device {}", device)));
    return std::string(text.data());
  }
  // Before CUDA 12 the context is made by the first call after cudaSetDevice only.
  [[nodiscard]] Status use(int device) override {
    ANTDT_RETURN_IF_ERROR(
        checked(calls_.set_device(device), fmt::format("using device {}", device)));
    return checked(calls_.free(nullptr), fmt::format("using device {}", device));
  }
  [[nodiscard]] Result<void*> allocate(std::size_t bytes) override {
    void* memory = nullptr;
    ANTDT_RETURN_IF_ERROR(checked(calls_.allocate(&memory, bytes),
                                  fmt::format("allocating {} bytes on the device", bytes)));
    return memory;
  }
  void free(void* memory) override { static_cast<void>(calls_.free(memory)); }
  [[nodiscard]] Result<Stream> make_stream() override {
    Stream stream = nullptr;
    ANTDT_RETURN_IF_ERROR(
        checked(calls_.stream_create(&stream, kStreamNonBlocking), "making a stream"));
    return stream;
  }
  void destroy_stream(Stream stream) override { static_cast<void>(calls_.stream_destroy(stream)); }
  [[nodiscard]] Status copy(void* to, const void* from, std::size_t bytes, Stream stream) override {
    return checked(calls_.copy(to, from, bytes, kCopyByPointers, stream),
                   fmt::format("copying {} bytes from or to the device", bytes));
  }
  [[nodiscard]] Result<Event> make_event() override {
    Event event = nullptr;
    ANTDT_RETURN_IF_ERROR(checked(calls_.event_create(&event, kEventNoTiming), "making an event"));
    return event;
  }
  void destroy_event(Event event) override { static_cast<void>(calls_.event_destroy(event)); }
  [[nodiscard]] Status record(Event event, Stream stream) override {
    return checked(calls_.event_record(event, stream), "recording an event");
  }
  [[nodiscard]] Result<Work> query(Event event) override {
    const int code = calls_.event_query(event);
    if (code == kCudaNotReady) {
      // It is the thread's last error now, which LibTorch would take for that of its next kernel.
      static_cast<void>(calls_.last_error());
      return Work::kRunning;
    }
    ANTDT_RETURN_IF_ERROR(checked(code, "waiting for work of the device"));
    return Work::kDone;
  }

 private:
  [[nodiscard]] Status checked(int code, const std::string& what) const {
    if (code == kCudaSuccess) return {};
    return fail(ErrorKind::kIo, "CUDA: {}: {} (error {})", what, calls_.error_string(code), code);
  }

  const std::string name_;
  const CudaFunctions calls_;
};

}  // namespace

Result<std::shared_ptr<CudaRuntime>> load_cuda_runtime(const std::vector<std::string>& candidates) {
  const auto object = SharedObject::load("the CUDA runtime", candidates);
  if (!object) {
    return fail(ErrorKind::kUsage,
                "{}. Install it (for example the package {}), or name its file in "
                "ANTDT_CUDART_LIBRARY",
                object.error().message, accelerator::kCudaRuntimeWheels);
  }
  CudaFunctions calls;
  ANTDT_RETURN_IF_ERROR(find_cuda_functions(*object, calls));
  int version = 0;
  if (calls.runtime_version(&version) != kCudaSuccess) version = 0;
  ANTDT_RETURN_IF_ERROR(accelerator::check_cuda_version(version));
  const std::string file = std::filesystem::path(object->path()).filename().string();
  return std::make_shared<LoadedCuda>(
      fmt::format("{} ({})", file, accelerator::cuda_version_text(version)), calls);
}

}  // namespace antdt::nccl
