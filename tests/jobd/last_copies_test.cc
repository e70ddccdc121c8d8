#include "jobd/last_copies.h"

#include <gtest/gtest.h>

namespace antdt::jobd {
namespace {

TEST(LastCopies, AreWaitedForAsLongAsBytesMove) {
  MonoTime now{std::chrono::seconds(100)};
  LastCopies last(now, {7});
  std::uint64_t moved = 7;
  for (int times = 0; times < 100; ++times) {
    now += LastCopies::kPatience - std::chrono::seconds(1);
    EXPECT_TRUE(last.may_come(now, {++moved})) << times;
  }
  now += LastCopies::kPatience - std::chrono::seconds(1);
  EXPECT_TRUE(last.may_come(now, {moved}));
  now += std::chrono::seconds(1);
  EXPECT_FALSE(last.may_come(now, {moved}));
}

// It has all bytes, and syncs 20 GB.
TEST(LastCopies, AreWaitedForWhileAHostIsAtItsDisk) {
  MonoTime now{std::chrono::seconds(100)};
  LastCopies last(now, {7});
  for (int times = 0; times < 100; ++times) {
    now += LastCopies::kPatience;
    EXPECT_TRUE(last.may_come(now, {7, true})) << times;
  }
  now += LastCopies::kPatience;
  EXPECT_FALSE(last.may_come(now, {7, false}));
}

TEST(LastCopies, AreGivenUpWhenAnOperatorAsksForTheEndAgain) {
  MonoTime now{std::chrono::seconds(100)};
  LastCopies last(now, {7});
  last.hurry(now + std::chrono::seconds(5));
  last.hurry(now + std::chrono::seconds(50));
  EXPECT_TRUE(last.may_come(now + std::chrono::seconds(4), {8}));
  EXPECT_FALSE(last.may_come(now + std::chrono::seconds(5), {9, true}));
}

}  // namespace
}  // namespace antdt::jobd
