// Which releases of NCCL and of the CUDA runtime may be used, and why others may not. Pure.
#pragma once

#include <string>

#include "core/result.h"

namespace antdt::accelerator {

// NCCL_VERSION_CODE of releases since 2.9: 22703 is 2.27.3. Earlier releases have other codes.
[[nodiscard]] std::string version_text(int code);

// The releases whose declarations were compared with trainer/nccl/abi.h
// (docs/operations/nccl.md). Earlier ones have defects in what is used there: until 2.24.3 a
// non-blocking ncclSend or ncclRecv could return ncclSuccess without being enqueued, and until
// 2.26.2 a non-blocking communicator could not be made safely after a non-blocking operation on
// another one (NCCL's release notes).
inline constexpr int kOldestVersion = 22602;
inline constexpr int kNewestVersion = 23299;  // all of 2.32
inline constexpr const char* kVersionsText = "2.26.2 to 2.32";

// For messages: the wheels of Python that have them. NCCL's wheels of CUDA 12 and 13 have their
// file under the same path, so the wrong one replaces the library that PyTorch needs.
inline constexpr const char* kNcclWheels =
    "nvidia-nccl-cu12 for CUDA 12, nvidia-nccl-cu13 for CUDA 13";
inline constexpr const char* kCudaRuntimeWheels =
    "nvidia-cuda-runtime-cu12 for CUDA 12, nvidia-cuda-runtime for CUDA 13";

// kUsage with the version, the reason, and what to do.
[[nodiscard]] Status check_version(int code);
// The code of "2.27.5" or "2.27.5.1"; 0 if it is none.
[[nodiscard]] int version_code(const std::string& text);

// cudaRuntimeGetVersion: 12040 is 12.4.
[[nodiscard]] std::string cuda_version_text(int code);
inline constexpr int kOldestCuda = 11000;
[[nodiscard]] Status check_cuda_version(int code);

}  // namespace antdt::accelerator
