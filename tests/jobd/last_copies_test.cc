#include "jobd/last_copies.h"

#include <gtest/gtest.h>

namespace antdt::jobd {
namespace {

TEST(LastCopies, AreWaitedForAsLongAsBytesMove) {
  MonoTime now{std::chrono::seconds(100)};
  LastCopies last(now, 7);
  std::uint64_t moved = 7;
  for (int times = 0; times < 100; ++times) {
    now += LastCopies::kPatience - std::chrono::seconds(1);
    EXPECT_TRUE(last.may_come(now, ++moved)) << times;
  }
  now += LastCopies::kPatience - std::chrono::seconds(1);
  EXPECT_TRUE(last.may_come(now, moved));
  now += std::chrono::seconds(1);
  EXPECT_FALSE(last.may_come(now, moved));
}

}  // namespace
}  // namespace antdt::jobd
