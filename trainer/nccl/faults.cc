#include "trainer/nccl/faults.h"

#include <fmt/format.h>

namespace antdt::nccl {
namespace {

struct Meaning {
  ErrorKind kind;
  std::string_view cause, advice;
};

Meaning meaning_of(Code code) {
  switch (code) {
    case Code::kUnhandledCudaError:
      return {ErrorKind::kInternal, "a call of CUDA failed inside NCCL",
              "this process cannot use its device any more and has to be started again; the "
              "kernel's log (dmesg, Xid) names a fault of the device"};
    case Code::kSystemError:
      return {ErrorKind::kIo, "a call of the operating system failed inside NCCL",
              "NCCL_DEBUG=WARN in the job's environment shows which: often a network interface "
              "(NCCL_SOCKET_IFNAME), a full /dev/shm, or the limit of locked memory"};
    case Code::kInternalError:
      return {ErrorKind::kInternal, "NCCL failed an internal check",
              "NCCL_DEBUG=INFO in the job's environment shows where; another release of NCCL may "
              "not have that defect"};
    case Code::kInvalidUsage:
      return {
          ErrorKind::kUsage, "NCCL cannot work with this environment or host",
          "check NCCL_SOCKET_IFNAME, NCCL_NET, NCCL_ALGO and NCCL_PROTO in the job's environment "
          "and in the host's nccl.conf; NCCL_DEBUG=WARN shows what NCCL refused"};
    case Code::kRemoteError:
      return {ErrorKind::kIo, "another member is gone, or the network between them failed",
              "the group forms again without a lost member"};
    case Code::kTimeout:
      return {ErrorKind::kIo, "NCCL waited too long for another member",
              "the group forms again without a lost member"};
    default:
      return {ErrorKind::kInternal, "NCCL was called wrongly",
              "this is a defect of AntDT: please report it with the output of NCCL_DEBUG=WARN"};
  }
}

}  // namespace

std::string_view name_of(Code code) {
  switch (code) {
    case Code::kSuccess:
      return "ncclSuccess";
    case Code::kUnhandledCudaError:
      return "ncclUnhandledCudaError";
    case Code::kSystemError:
      return "ncclSystemError";
    case Code::kInternalError:
      return "ncclInternalError";
    case Code::kInvalidArgument:
      return "ncclInvalidArgument";
    case Code::kInvalidUsage:
      return "ncclInvalidUsage";
    case Code::kRemoteError:
      return "ncclRemoteError";
    case Code::kInProgress:
      return "ncclInProgress";
    case Code::kTimeout:
      return "ncclTimeout";
  }
  return "an unknown result";
}

Error fault(Code code, std::string_view doing, std::string_view text) {
  const Meaning meaning = meaning_of(code);
  return {meaning.kind,
          fmt::format("{}: {} ({}, {}{}{}): {}", doing, meaning.cause, name_of(code),
                      static_cast<int>(code), text.empty() ? "" : ": ", text, meaning.advice)};
}

}  // namespace antdt::nccl
