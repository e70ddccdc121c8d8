// NCCL as a shared library that is loaded at run time, and never unloaded.
#pragma once

#include <string>
#include <vector>

#include "core/accelerator/find_library.h"
#include "core/result.h"
#include "trainer/nccl/abi.h"

namespace antdt::nccl {

struct Library {
  std::string path;  // the file, as the dynamic loader names it
  int version = 0;   // ncclGetVersion

  Code (*get_version)(int*) = nullptr;
  Code (*get_unique_id)(UniqueId*) = nullptr;
  Code (*comm_init_rank_config)(Comm*, int size, UniqueId, int rank, Config*) = nullptr;
  Code (*comm_get_async_error)(Comm, Code*) = nullptr;
  Code (*comm_abort)(Comm) = nullptr;
  Code (*comm_finalize)(Comm) = nullptr;
  Code (*comm_destroy)(Comm) = nullptr;
  Code (*all_reduce)(const void*, void*, std::size_t count, DataType, int operation, Comm,
                     Stream) = nullptr;
  Code (*send)(const void*, std::size_t count, DataType, int peer, Comm, Stream) = nullptr;
  Code (*recv)(void*, std::size_t count, DataType, int peer, Comm, Stream) = nullptr;
  const char* (*get_error_string)(Code) = nullptr;
  const char* (*get_last_error)(Comm) = nullptr;
};

// The first of `candidates` that can be loaded. kUsage if there is none, if it lacks a function, if
// its version is not known to work (versions.h), or if the program has another NCCL for all its
// parts: the message names file and version, or both files. `environment`: where ANTDT_NCCL_LIBRARY
// may have named the candidate.
[[nodiscard]] Result<Library> load_library(
    const std::vector<std::string>& candidates,
    const accelerator::Environment& environment = accelerator::own_environment());

// What `antdt doctor` says of the library: its version is told even if it cannot be used. kUsage if
// it cannot be loaded or has no ncclGetVersion.
struct Found {
  std::string path;
  int version = 0;
};
[[nodiscard]] Result<Found> find_nccl(const std::vector<std::string>& candidates);

}  // namespace antdt::nccl
