// What an error of NCCL means for the member that got it. Pure.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "trainer/nccl/abi.h"

namespace antdt::nccl {

// `doing`: what was tried, "the all-reduce of 4096 elements". `text`: ncclGetLastError, or "".
//
// kIo for what a new generation may mend: a member is gone, a network or a system call failed.
// kUsage for what a person has to mend: NCCL was told what it cannot do on this host. kInternal for
// anything else: the device's context is lost, or NCCL or its caller has a defect. This worker has
// to be started again then.
[[nodiscard]] Error fault(Code code, std::string_view doing, std::string_view text);

[[nodiscard]] std::string_view name_of(Code code);

}  // namespace antdt::nccl
