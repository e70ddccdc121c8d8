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
  for (const ErrorKind kind : {ErrorKind::kUsage, ErrorKind::kTooLarge, ErrorKind::kInternal}) {
    const Input input = group_failed({kind, "x"});
    const auto* const failed = std::get_if<WorkFailed>(&input);
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->error.kind, kind);
    EXPECT_EQ(failed->error.message, "x");
  }
}

// Whatever is not the end of the group is told, because the next generation meets it as well. Only
// what a server cannot read may pass: the member's own files and sockets are not the server's.
TEST(RowsFailed, OnlyTheEndOfTheGroupIsNoProblem) {
  EXPECT_TRUE(std::holds_alternative<CollectiveBroke>(rows_failed({ErrorKind::kAborted, "x"})));
  for (const auto kind : {ErrorKind::kUsage, ErrorKind::kInternal}) {
    EXPECT_TRUE(std::holds_alternative<WorkFailed>(rows_failed({kind, "x"})));
  }
  for (const auto kind : {ErrorKind::kPeerIo, ErrorKind::kIo, ErrorKind::kRefused,
                          ErrorKind::kCorrupt, ErrorKind::kUnreachable}) {
    const Input failed = rows_failed({kind, "x"});
    ASSERT_TRUE(std::holds_alternative<RowsUnread>(failed)) << static_cast<int>(kind);
    EXPECT_EQ(std::get<RowsUnread>(failed).why, "x");
    const auto cause = std::get<RowsUnread>(failed).cause;
    EXPECT_EQ(cause == StateUnreadable::Cause::kDisk, kind == ErrorKind::kPeerIo);
    EXPECT_EQ(cause == StateUnreadable::Cause::kContent, kind == ErrorKind::kCorrupt);
  }
}

}  // namespace
}  // namespace antdt::worker
