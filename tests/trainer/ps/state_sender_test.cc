#include "trainer/ps/replica/state_sender.h"

#include <gtest/gtest.h>

namespace antdt::ps::state_sender_test {
namespace {

StatePiece piece(bool last = false) { return {1, "bytes", last}; }

TEST(StateSenderTest, APieceIsAskedForOnceAndTheNextOneOnlyWhenItIsThere) {
  StateSender sender(3, 1, 7);
  EXPECT_TRUE(sender.asks());
  EXPECT_FALSE(sender.asks());
  const wire::PsImage& sent = sender.piece(piece());
  EXPECT_EQ(sent.piece, 1U);
  EXPECT_EQ(sent.view, 3U);
  EXPECT_TRUE(sender.asks());
  EXPECT_EQ(sender.piece(piece()).piece, 2U);
}

TEST(StateSenderTest, NothingIsAskedForAfterTheLastPiece) {
  StateSender sender(3, 1, 7);
  ASSERT_TRUE(sender.asks());
  EXPECT_FALSE(sender.all_made());
  EXPECT_TRUE(sender.piece(piece(true)).last);
  EXPECT_TRUE(sender.all_made());
  EXPECT_FALSE(sender.asks());
  sender.taken(1);
  EXPECT_FALSE(sender.asks());
}

TEST(StateSenderTest, NoMorePiecesAreMadeThanMayBeUnderWay) {
  StateSender sender(3, 1, 7);
  for (std::size_t n = 1; n <= StateSender::kUnderWay; ++n) {
    ASSERT_TRUE(sender.asks());
    EXPECT_EQ(sender.piece(piece()).piece, n);
  }
  EXPECT_FALSE(sender.asks());
  sender.taken(StateSender::kUnderWay + 1);
  EXPECT_FALSE(sender.asks()) << "that many were never sent";
  sender.taken(1);
  EXPECT_TRUE(sender.asks());
}

TEST(StateSenderTest, PiecesAreSentAgainOnlyIfNoneWasTakenSinceTheLastLook) {
  StateSender sender(3, 1, 7);
  for (std::uint64_t n = 1; n <= 3; ++n) {
    ASSERT_TRUE(sender.asks());
    EXPECT_EQ(sender.piece(piece()).piece, n);
  }
  sender.taken(1);
  EXPECT_TRUE(sender.look().empty());
  const auto again = sender.look();
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again.front().piece, 2U);
}

}  // namespace
}  // namespace antdt::ps::state_sender_test
