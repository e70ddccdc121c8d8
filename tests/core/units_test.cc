#include "core/schema/units.h"

#include <gtest/gtest.h>

namespace antdt::schema {
namespace {

using std::chrono::microseconds;

TEST(Duration, AnyUnitIsRead) {
  EXPECT_EQ(parse_duration("100us").value(), microseconds(100));
  EXPECT_EQ(parse_duration("250ms").value(), microseconds(250'000));
  EXPECT_EQ(parse_duration("1.5s").value(), microseconds(1'500'000));
  EXPECT_EQ(parse_duration("5m").value(), std::chrono::minutes(5));
  EXPECT_EQ(parse_duration("2h").value(), std::chrono::hours(2));
  EXPECT_EQ(parse_duration("0").value(), microseconds(0));
}

TEST(Duration, AnInvalidTimeIsRefusedWithAnExample) {
  for (const char* text :
       {"", "10", "s", "10 s", "-1s", "10sec", "1e3s", "nans", "infs", "0.5us"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
  EXPECT_NE(parse_duration("10").error().message.find("\"10s\""), std::string::npos);
  EXPECT_FALSE(parse_duration("99999999999999h"));
}

TEST(Duration, IsWrittenInTheLargestWholeUnit) {
  EXPECT_EQ(format_duration(microseconds(0)), "0s");
  EXPECT_EQ(format_duration(std::chrono::seconds(90)), "90s");
  EXPECT_EQ(format_duration(std::chrono::seconds(120)), "2m");
  EXPECT_EQ(format_duration(microseconds(1'500'000)), "1500ms");
  EXPECT_EQ(format_duration(microseconds(1)), "1us");
}

TEST(Size, BinaryAndDecimalUnitsAreRead) {
  EXPECT_EQ(parse_size("2GiB").value(), 2ULL << 30);
  EXPECT_EQ(parse_size("0.5KiB").value(), 512U);
  EXPECT_EQ(parse_size("3MB").value(), 3'000'000U);
  EXPECT_EQ(parse_size("7B").value(), 7U);
}

TEST(Size, AnInvalidSizeIsRefused) {
  for (const char* text : {"", "2", "2G", "GiB", "-1B", "0.3B", "9999999TiB"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
}

TEST(Size, IsWrittenInTheLargestWholeUnit) {
  EXPECT_EQ(format_size(0), "0B");
  EXPECT_EQ(format_size(64 << 20), "64MiB");
  EXPECT_EQ(format_size(1025), "1025B");
}

}  // namespace
}  // namespace antdt::schema
