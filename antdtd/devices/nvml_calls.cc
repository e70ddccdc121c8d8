#include "antdtd/devices/nvml_calls.h"

#include <dlfcn.h>

namespace antdt::antdtd::nvml {
namespace {

template <class F>
bool find(const Calls& calls, F*& call, const char* name) {
  call = reinterpret_cast<F*>(dlsym(calls.library.get(), name));
  return call != nullptr;
}

}  // namespace

void CloseLibrary::operator()(void* library) const { dlclose(library); }

Result<Calls> find_calls(const std::string& library) {
  Calls calls;
  calls.library.reset(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!calls.library) return fail(ErrorKind::kUnreachable, "{}", dlerror());
  const bool all =
      find(calls, calls.init, "nvmlInit_v2") && find(calls, calls.shutdown, "nvmlShutdown") &&
      find(calls, calls.count, "nvmlDeviceGetCount_v2") &&
      find(calls, calls.handle, "nvmlDeviceGetHandleByIndex_v2") &&
      // Its name until CUDA 12 follows: CUDA 14 will not have it any more.
      (find(calls, calls.throttle_reasons, "nvmlDeviceGetCurrentClocksEventReasons") ||
       find(calls, calls.throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons")) &&
      (find(calls, calls.processes, "nvmlDeviceGetComputeRunningProcesses_v3") ||
       find(calls, calls.processes, "nvmlDeviceGetComputeRunningProcesses_v2"));
  if (!all) return fail(ErrorKind::kUnreachable, "{} is too old: a call is missing", library);
  find(calls, calls.error_string, "nvmlErrorString");
  find(calls, calls.uuid, "nvmlDeviceGetUUID");
  find(calls, calls.name, "nvmlDeviceGetName");
  find(calls, calls.memory, "nvmlDeviceGetMemoryInfo");
  find(calls, calls.pci, "nvmlDeviceGetPciInfo_v3");
  find(calls, calls.cpus, "nvmlDeviceGetCpuAffinity");
  find(calls, calls.memory_nodes, "nvmlDeviceGetMemoryAffinity");
  find(calls, calls.mig_mode, "nvmlDeviceGetMigMode");
  find(calls, calls.most_mig, "nvmlDeviceGetMaxMigDeviceCount");
  find(calls, calls.mig_handle, "nvmlDeviceGetMigDeviceHandleByIndex");
  find(calls, calls.ecc_errors, "nvmlDeviceGetTotalEccErrors");
  find(calls, calls.pages_pending, "nvmlDeviceGetRetiredPagesPendingStatus");
  find(calls, calls.remapped_rows, "nvmlDeviceGetRemappedRows");
  find(calls, calls.utilization, "nvmlDeviceGetUtilizationRates");
  find(calls, calls.clock, "nvmlDeviceGetClockInfo");
  find(calls, calls.most_clock, "nvmlDeviceGetMaxClockInfo");
  return calls;
}

}  // namespace antdt::antdtd::nvml
