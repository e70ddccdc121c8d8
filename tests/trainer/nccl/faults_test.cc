#include "trainer/nccl/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::nccl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(NcclFaults, WhatANewGroupMayMendIsTransient) {
  for (const Code code : {Code::kSystemError, Code::kRemoteError, Code::kTimeout}) {
    EXPECT_EQ(fault(code, "x", "").kind, ErrorKind::kIo) << name_of(code);
  }
  for (const Code code : {Code::kUnhandledCudaError, Code::kInternalError, Code::kInvalidArgument,
                          Code::kInvalidUsage, static_cast<Code>(99)}) {
    EXPECT_EQ(fault(code, "x", "").kind, ErrorKind::kInternal) << name_of(code);
  }
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
