#include "trainer/nccl/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace antdt::nccl {
namespace {

TEST(Half, KnownNumbersOfBinary16) {
  EXPECT_EQ(from_float16(0x3c00), 1.0F);
  EXPECT_EQ(from_float16(0xc000), -2.0F);
  EXPECT_EQ(from_float16(0x7bff), 65504.0F);               // the largest
  EXPECT_EQ(from_float16(0x0400), std::ldexp(1.0F, -14));  // the smallest normal one
  EXPECT_EQ(from_float16(0x0001), std::ldexp(1.0F, -24));  // the smallest
  EXPECT_EQ(from_float16(0x3555), 0.333251953125F);
  EXPECT_EQ(from_float16(0x7c00), std::numeric_limits<float>::infinity());
}

TEST(Half, EveryNumberOf16BitsComesBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if (std::isnan(from_float16(half))) {
      EXPECT_TRUE(std::isnan(from_float16(to_float16(from_float16(half))))) << bits;
    } else {
      EXPECT_EQ(to_float16(from_float16(half)), half) << bits;
    }
    if (std::isnan(from_bfloat16(half))) {
      EXPECT_TRUE(std::isnan(from_bfloat16(to_bfloat16(from_bfloat16(half))))) << bits;
    } else {
      EXPECT_EQ(to_bfloat16(from_bfloat16(half)), half) << bits;
    }
  }
}

// Between two neighbours: below the middle down, above it up, in the middle to the even one.
TEST(Half, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const auto low = static_cast<std::uint16_t>(bits);
    const auto high = static_cast<std::uint16_t>(bits + 1);
    const float middle = (from_float16(low) + from_float16(high)) / 2;
    EXPECT_EQ(to_float16(middle), bits % 2 == 0 ? low : high) << bits;
    EXPECT_EQ(to_float16(std::nextafter(middle, 0.0F)), low) << bits;
    EXPECT_EQ(to_float16(std::nextafter(middle, 1e6F)), high) << bits;
  }
  EXPECT_EQ(to_float16(65519.996F), 0x7bff);
  EXPECT_EQ(to_float16(65520.0F), 0x7c00);
  EXPECT_EQ(to_float16(-70000.0F), 0xfc00);
  EXPECT_EQ(to_bfloat16(1.00390625F), 0x3f80);  // 1 + 2^-8: in the middle, 1 is even
  EXPECT_EQ(to_bfloat16(1.01171875F), 0x3f82);  // 1 + 3 * 2^-8
}

}  // namespace
}  // namespace antdt::nccl
