#include "trainer/nccl/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::nccl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(NcclFaults, WhatANewGroupMayMendIsTransient) {
  for (const Code code : {Code::kSystemError, Code::kRemoteError, Code::kTimeout}) {
    EXPECT_EQ(fault(code, "x", "").kind, ErrorKind::kIo) << name_of(code);
  }
  for (const Code code : {Code::kUnhandledCudaError, Code::kInternalError, Code::kInvalidArgument,
                          static_cast<Code>(99)}) {
    EXPECT_EQ(fault(code, "x", "").kind, ErrorKind::kInternal) << name_of(code);
  }
}

// NCCL_SOCKET_IFNAME that no interface has, NCCL_NET that no plugin is, a bad NCCL_ALGO.
TEST(NcclFaults, AnEnvironmentThatNcclRefusesIsForAPersonToMend) {
  const Error refused = fault(Code::kInvalidUsage, "making the id of the group", "");
  EXPECT_EQ(refused.kind, ErrorKind::kUsage);
  EXPECT_THAT(refused.message, AllOf(HasSubstr("NCCL_SOCKET_IFNAME"), HasSubstr("NCCL_NET"),
                                     HasSubstr("NCCL_ALGO"), Not(HasSubstr("defect of AntDT"))));
  EXPECT_THAT(fault(Code::kInvalidArgument, "x", "").message, HasSubstr("defect of AntDT"));
}

TEST(NcclFaults, MessagesSayWhatWasTriedTheCauseAndTheWayToMendIt) {
  EXPECT_THAT(fault(Code::kSystemError, "the all-reduce of 8 elements", "connect: refused").message,
              AllOf(HasSubstr("the all-reduce of 8 elements: "), HasSubstr("ncclSystemError, 2"),
                    HasSubstr("connect: refused"), HasSubstr("NCCL_DEBUG=WARN")));
  EXPECT_THAT(fault(Code::kUnhandledCudaError, "x", "").message, HasSubstr("started again"));
  EXPECT_THAT(fault(Code::kInternalError, "x", "").message, HasSubstr("NCCL_DEBUG=INFO"));
  EXPECT_THAT(fault(Code::kRemoteError, "x", "").message, HasSubstr("another member is gone"));
}

}  // namespace
}  // namespace antdt::nccl
