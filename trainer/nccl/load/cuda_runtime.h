// What is used of the CUDA runtime. The calls of one object may come from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "trainer/nccl/abi.h"

namespace antdt::nccl {

enum class Work : std::uint8_t { kRunning, kDone };

// Errors are kIo with CUDA's own words; one that a kernel caused is returned by every later call of
// the process, which then has to be started again.
class CudaRuntime {
 public:
  virtual ~CudaRuntime() = default;

  // "libcudart.so.12 (12.4)".
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual Result<int> devices() = 0;
  // "0000:3B:00.0": the same device has the same identity in all processes of a host.
  [[nodiscard]] virtual Result<std::string> identity(int device) = 0;
  // Makes the device that of the calling thread, and its context current.
  [[nodiscard]] virtual Status use(int device) = 0;

  [[nodiscard]] virtual Result<void*> allocate(std::size_t bytes) = 0;
  virtual void free(void* memory) = 0;
  [[nodiscard]] virtual Result<Stream> make_stream() = 0;  // independent of the default stream
  virtual void destroy_stream(Stream stream) = 0;
  // In whichever direction the pointers say. From or to pageable memory it may block.
  [[nodiscard]] virtual Status copy(void* to, const void* from, std::size_t bytes,
                                    Stream stream) = 0;

  [[nodiscard]] virtual Result<Event> make_event() = 0;
  virtual void destroy_event(Event event) = 0;
  // Marks what was enqueued in the stream until now; query says whether that is done.
  [[nodiscard]] virtual Status record(Event event, Stream stream) = 0;
  [[nodiscard]] virtual Result<Work> query(Event event) = 0;
};

// The first of `candidates` that can be loaded (find_library.h). kUsage if there is none, if it
// lacks a function, or is too old.
[[nodiscard]] Result<std::shared_ptr<CudaRuntime>> load_cuda_runtime(
    const std::vector<std::string>& candidates);

}  // namespace antdt::nccl
