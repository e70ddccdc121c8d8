#include "launcher/start/skips.h"

#include <gtest/gtest.h>

#include "core/os/fs.h"

namespace antdt::launcher {
namespace {

TEST(Skips, AreReadAsTheyWereWritten) {
  const TempDir dir;
  ASSERT_TRUE(read_skips(dir.path())) << "no file: none";
  EXPECT_TRUE(read_skips(dir.path())->empty());
  ASSERT_TRUE(write_skips(dir.path(), {{1, 5, 9, "it \"kills\"", "me@here", 3}}));
  const auto skips = read_skips(dir.path());
  ASSERT_TRUE(skips) << skips.error().message;
  ASSERT_EQ(skips->size(), 1U);
  const Skip& skip = skips->front();
  EXPECT_EQ(skip.epoch, 1U);
  EXPECT_EQ(skip.from, 5U);
  EXPECT_EQ(skip.to, 9U);
  EXPECT_EQ(skip.reason, "it \"kills\"");
  EXPECT_EQ(skip.who, "me@here");
  EXPECT_EQ(skip.lineage, 3U);
}

TEST(Skips, AFileThatIsDamagedIsAnErrorAndNotNoSkips) {
  const TempDir dir;
  for (const char* text : {"", "{", "[{\"epoch\":1}]", "[7]"}) {
    ASSERT_TRUE(write_file_atomic(dir / "skips.json", text));
    const auto skips = read_skips(dir.path());
    ASSERT_FALSE(skips) << text;
    EXPECT_EQ(skips.error().kind, ErrorKind::kCorrupt);
  }
}

TEST(Skips, ARangeIsTwoNumbersTheFirstBelowTheSecond) {
  const auto range = parse_skip_range("12:300");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->from, 12U);
  EXPECT_EQ(range->to, 300U);
  for (const char* text : {"", "12", "12:", ":3", "3:3", "4:3", "a:b", "1:2x", "-1:2", "1-2"}) {
    EXPECT_FALSE(parse_skip_range(text)) << text;
  }
}

}  // namespace
}  // namespace antdt::launcher
