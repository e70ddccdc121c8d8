// The part of NVML's interface that is used, found at run time. Names, numbers and layouts are
// those of its reference (nvml.h of NVIDIA's GPU Deployment Kit); a call that an older library
// lacks is null.
#pragma once

#include <memory>
#include <string>

#include "antdtd/devices/nvml_types.h"
#include "core/result.h"

namespace antdt::antdtd::nvml {

struct CloseLibrary {
  void operator()(void* library) const;
};

struct Calls {
  std::unique_ptr<void, CloseLibrary> library;
  // Needed.
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned index, Handle*) = nullptr;
  int (*throttle_reasons)(Handle, unsigned long long*) = nullptr;
  int (*processes)(Handle, unsigned* count, void* infos) = nullptr;  // an array of ProcessInfo
  // May be null.
  const char* (*error_string)(int error) = nullptr;
  int (*uuid)(Handle, char*, unsigned length) = nullptr;
  int (*name)(Handle, char*, unsigned length) = nullptr;
  int (*memory)(Handle, Memory*) = nullptr;
  int (*pci)(Handle, PciInfo*) = nullptr;
  int (*cpus)(Handle, unsigned words, unsigned long* set) = nullptr;
  int (*memory_nodes)(Handle, unsigned words, unsigned long* set, unsigned scope) = nullptr;
  int (*mig_mode)(Handle, unsigned* now, unsigned* later) = nullptr;
  int (*most_mig)(Handle, unsigned*) = nullptr;
  int (*mig_handle)(Handle, unsigned index, Handle*) = nullptr;
  int (*ecc_errors)(Handle, int type, int since, unsigned long long*) = nullptr;
  int (*pages_pending)(Handle, int*) = nullptr;
  int (*remapped_rows)(Handle, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                       unsigned* failed) = nullptr;
  int (*utilization)(Handle, Utilization*) = nullptr;
  int (*clock)(Handle, int type, unsigned* mhz) = nullptr;
  int (*most_clock)(Handle, int type, unsigned* mhz) = nullptr;
};

// The error says why the library cannot be used: it is missing, or lacks a call that is needed.
[[nodiscard]] Result<Calls> find_calls(const std::string& library);

}  // namespace antdt::antdtd::nvml
