#include "core/utf8.h"

#include <gtest/gtest.h>

namespace antdt {
namespace {

TEST(Utf8Test, ValidTextIsKept) {
  const std::string text = "torn \u00e9 \u20ac \U0001f600";
  EXPECT_EQ(valid_utf8(text, 100), text);
  EXPECT_EQ(valid_utf8("", 100), "");
}

TEST(Utf8Test, ControlCharactersBecomeSpaces) {
  EXPECT_EQ(valid_utf8("a\nb\x1b[1mc\x7f", 100), "a b [1mc ");
}

TEST(Utf8Test, EachByteOfNoCharacterBecomesAQuestionMark) {
  EXPECT_EQ(valid_utf8("a\xff"
                       "b",
                       100),
            "a?b");
  EXPECT_EQ(valid_utf8("\xc0\xaf", 100), "??") << "longer than necessary";
  EXPECT_EQ(valid_utf8("\xe0\x80\xaf", 100), "???") << "longer than necessary";
  EXPECT_EQ(valid_utf8("\xed\xa0\x80", 100), "???") << "a surrogate";
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80", 100), "????") << "beyond the last character";
  EXPECT_EQ(valid_utf8("\xe2\x82", 100), "??") << "cut off";
}

TEST(Utf8Test, NoCharacterIsCut) {
  EXPECT_EQ(valid_utf8("ab\u20ac", 4), "ab");
  EXPECT_EQ(valid_utf8("ab\u20ac", 5), "ab\u20ac");
}

}  // namespace
}  // namespace antdt
