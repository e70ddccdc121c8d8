// The types and numbers of NVML's interface that are used, as in its reference (nvml.h of NVIDIA's
// GPU Deployment Kit).
#pragma once

namespace antdt::antdtd::nvml {

using Handle = void*;

struct Memory {
  unsigned long long total, free, used;
};
struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct Utilization {
  unsigned gpu, memory;
};
struct ProcessInfo {  // the same in versions 2 and 3 of the call
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};

enum Return : int {
  kSuccess = 0,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kVersionMismatch = 18,  // of the library and the driver in the kernel
};
inline constexpr int kUncorrected = 1;       // nvmlMemoryErrorType_t
inline constexpr int kSinceDriverBegan = 0;  // nvmlEccCounterType_t: volatile
inline constexpr int kProcessorClock = 1;    // nvmlClockType_t: SM
inline constexpr unsigned kNearestNode = 0;  // nvmlAffinityScope_t

}  // namespace antdt::antdtd::nvml
