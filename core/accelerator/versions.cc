#include "core/accelerator/versions.h"

#include <cstdio>

namespace antdt::accelerator {

std::string version_text(int code) {
  if (code < 10000) return fmt::format("{}.{}.{}", code / 1000, code / 100 % 10, code % 100);
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

int version_code(const std::string& text) {
  int major = 0, minor = 0, patch = 0;
  if (std::sscanf(text.c_str(), "%d.%d.%d", &major, &minor, &patch) != 3) return 0;
  const bool is_early = major < 2 || (major == 2 && minor <= 8);
  return is_early ? major * 1000 + minor * 100 + patch : major * 10000 + minor * 100 + patch;
}

Status check_version(int code) {
  if (code >= kOldestVersion && code <= kNewestVersion) return {};
  const bool is_old = code < kOldestVersion;
  return fail(ErrorKind::kUsage,
              "NCCL {} {}: versions {} are known to work. Install one of them (for example the "
              "package {}), or name its file in ANTDT_NCCL_LIBRARY",
              version_text(code),
              is_old ? "is too old, an operation of it cannot be aborted reliably"
                     : "is newer than what was examined",
              kVersionsText, kNcclWheels);
}

std::string cuda_version_text(int code) {
  return fmt::format("{}.{}", code / 1000, code / 10 % 100);
}

Status check_cuda_version(int code) {
  if (code >= kOldestCuda) return {};
  return fail(ErrorKind::kUsage,
              "the CUDA runtime {} is too old: {} or a later one is needed. Install one, or name "
              "its file in ANTDT_CUDART_LIBRARY",
              cuda_version_text(code), cuda_version_text(kOldestCuda));
}

}  // namespace antdt::accelerator
