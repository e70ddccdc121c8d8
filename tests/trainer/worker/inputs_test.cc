#include "trainer/worker/member/inputs.h"

#include <gtest/gtest.h>

namespace antdt::worker {
namespace {

TEST(GroupFailed, ANewGroupIsFormedForWhatItMayMend) {
  for (const ErrorKind kind : {ErrorKind::kIo, ErrorKind::kAborted, ErrorKind::kRefused,
                               ErrorKind::kCorrupt, ErrorKind::kUnreachable}) {
    const Input input = group_failed({kind, "x"});
    const auto* const broke = std::get_if<CollectiveBroke>(&input);
    ASSERT_NE(broke, nullptr);
    EXPECT_EQ(broke->why, "x");
  }
}

TEST(GroupFailed, AMemberGivesUpForWhatANewGroupCannotMend) {
  for (const ErrorKind kind : {ErrorKind::kUsage, ErrorKind::kInternal}) {
    const Input input = group_failed({kind, "x"});
    const auto* const failed = std::get_if<WorkFailed>(&input);
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->error.kind, kind);
    EXPECT_EQ(failed->error.message, "x");
  }
}

// An error of the member's own files or sockets is not taken for a server's.
TEST(RowsFailed, WhatAServerCannotReadIsToldApart) {
  EXPECT_TRUE(std::holds_alternative<RowsUnread>(rows_failed({ErrorKind::kPeerIo, "x"})));
  EXPECT_TRUE(std::holds_alternative<CollectiveBroke>(rows_failed({ErrorKind::kIo, "x"})));
  EXPECT_TRUE(std::holds_alternative<WorkFailed>(rows_failed({ErrorKind::kUsage, "x"})));
}

}  // namespace
}  // namespace antdt::worker
