// The part of NCCL's and of the CUDA runtime's binary interface that is used here. Nothing of
// either is needed to build AntDT; both are loaded at run time (library.h, cuda_library.h).
//
// NCCL: src/nccl.h.in of NVIDIA/nccl. The declarations below (functions, results, data types, the
// operation, the size of the unique id) are the same in each release from 2.14.3 to 2.32.3.
// CUDA runtime: the "CUDA Runtime API" reference, error handling, event and memory management.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

namespace antdt::nccl {

// ----------------------------------------------------------------------------------- NCCL

using Comm = void*;  // ncclComm_t: a pointer to a type that is never defined

// ncclResult_t.
enum class Code : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
  kTimeout = 8,  // since 2.30
};

// ncclUniqueId, which is passed by value.
struct UniqueId {
  char internal[128];
};
static_assert(sizeof(UniqueId) == 128, "NCCL_UNIQUE_ID_BYTES");

// ncclDataType_t.
enum class DataType : int { kUint8 = 1, kFloat16 = 6, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9 };
inline constexpr int kSumOperation = 0;  // ncclRedOp_t

// ncclConfig_t as 2.14 declared it (ncclConfig_v21400). Later releases append members. The library
// copies no more than `size` bytes, and gives a member that `version` did not have its default
// value (parseCommConfig in src/init.cc of 2.14.3, 2.18.3 and 2.30.7). So this shortest form is
// valid for all of them. `undefined` lies where 2.17 put cgaClusterSize, and has that release's
// NCCL_CONFIG_UNDEF_INT.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;  // NCCL_API_MAGIC
  unsigned version = 21400;     // NCCL_VERSION(2, 14, 0)
  int blocking = 0;
  int undefined = INT_MIN;
};
static_assert(sizeof(Config) == 24 && offsetof(Config, magic) == 8 &&
                  offsetof(Config, version) == 12 && offsetof(Config, blocking) == 16,
              "ncclConfig_v21400 on a machine with pointers of 64 bits");

// ----------------------------------------------------------------------------------- CUDA

using Stream = void*;  // cudaStream_t
using Event = void*;   // cudaEvent_t

inline constexpr int kCudaSuccess = 0;
inline constexpr int kCudaNotReady = 600;          // cudaErrorNotReady, since CUDA 10.1
inline constexpr unsigned kStreamNonBlocking = 1;  // cudaStreamNonBlocking
inline constexpr unsigned kEventNoTiming = 2;      // cudaEventDisableTiming
// cudaMemcpyDefault: the direction follows from the pointers (unified addressing).
inline constexpr int kCopyByPointers = 4;

}  // namespace antdt::nccl
