#include "core/metrics/event_file.h"

#include <gtest/gtest.h>

namespace antdt::metrics {
namespace {

// A literal with its zeros.
template <std::size_t kSize>
std::string bytes(const char (&literal)[kSize]) {
  return {literal, kSize - 1};
}

// The check value of the algorithm's catalogue entry, and one of RFC 3720, B.4.
TEST(EventFile, ChecksumsAreThoseOfCastagnoli) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(""), 0U);
}

// What TensorFlow writes at the time 0: length 24, its checksum, the message, its checksum.
TEST(EventFile, BeginsWithItsVersion) {
  const std::string head = event_file_head(0);
  ASSERT_EQ(head.size(), 8U + 4 + 24 + 4);
  EXPECT_EQ(head.substr(0, 8), bytes("\x18\0\0\0\0\0\0\0"));
  EXPECT_EQ(head.substr(12, 24), bytes("\x09\0\0\0\0\0\0\0\0\x1a\x0d") + "brain.Event:2");
}

TEST(EventFile, AScalarHasItsTagAndStep) {
  const std::string record = event_record({0, 300, {{"a", 1.0}}});
  // step: field 2, varint 300; summary: field 5, with one value of tag "a" and the float 1
  EXPECT_EQ(record.substr(12, record.size() - 16),
            bytes("\x09\0\0\0\0\0\0\0\0\x10\xac\x02\x2a\x0a\x0a\x08\x0a\x01") +
                bytes("a\x15\0\0\x80\x3f"));
}

TEST(EventFile, ARestartSaysFromWhichStepOnEarlierFilesAreForgotten) {
  const std::string record = event_restart(0, 300);
  // step: field 2, varint 300; session log: field 7, with status 1 (start)
  EXPECT_EQ(record.substr(12, record.size() - 16),
            bytes("\x09\0\0\0\0\0\0\0\0\x10\xac\x02\x3a\x02\x08\x01"));
}

}  // namespace
}  // namespace antdt::metrics
