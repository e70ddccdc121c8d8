#include "store/base64.h"

#include <gtest/gtest.h>

namespace antdt::store {
namespace {

TEST(Base64, TheExamplesOfItsStandard) {
  // RFC 4648, section 10
  for (const auto& [bytes, text] : {std::pair<std::string, std::string>{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"}}) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, AnyBytesComeBack) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
    bytes.push_back(static_cast<char>(i * 7));
  }
}

TEST(Base64, WhatIsNoBase64IsRefused) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Z===", "====", "=g==", "Zm9v\n", " Zm9", "Zm 9", "Zm9v!!!!", "Z=9v"}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
}

}  // namespace
}  // namespace antdt::store
