#include "core/ids.h"

#include <gtest/gtest.h>

namespace antdt {
namespace {

TEST(WorkerIdTest, ReadsWhatItPrints) {
  const WorkerId id{'w', 12};
  EXPECT_EQ(to_string(id), "w12");
  EXPECT_EQ(parse_worker_id("w12"), id);
}

TEST(WorkerIdTest, RefusesWhatIsNotALetterAndANumber) {
  for (const char* text : {"", "w", "12", "w01", "w-1", "w1x", "W1", "w99999999999"}) {
    EXPECT_EQ(parse_worker_id(text), std::nullopt) << text;
  }
}

TEST(UlidTest, SortsByTimeAndHasTwentySixCharacters) {
  const std::string earlier = make_ulid(1000, ~0ULL, ~0ULL);
  const std::string later = make_ulid(1001, 0, 0);
  EXPECT_EQ(earlier.size(), 26U);
  EXPECT_LT(earlier, later);
}

}  // namespace
}  // namespace antdt
