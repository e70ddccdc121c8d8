#include "core/wire/msgpack.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

namespace antdt::wire {
namespace {

using Type = MsgpackToken::Type;
using namespace std::string_literals;

std::string written(const std::function<void(MsgpackWriter&)>& write) {
  MsgpackWriter out;
  write(out);
  return out.take();
}

// Bytes from the specification's format overview, at each change of width.
TEST(MsgpackWriterTest, WritesIntegersInTheFewestBytes) {
  const auto u = [](std::uint64_t v) {
    return written([&](auto& out) { out.unsigned_integer(v); });
  };
  const auto i = [](std::int64_t v) { return written([&](auto& out) { out.signed_integer(v); }); };
  EXPECT_EQ(u(0), "\x00"s);
  EXPECT_EQ(u(127), "\x7f"s);
  EXPECT_EQ(u(128), "\xcc\x80"s);
  EXPECT_EQ(u(255), "\xcc\xff"s);
  EXPECT_EQ(u(256), "\xcd\x01\x00"s);
  EXPECT_EQ(u(65536), "\xce\x00\x01\x00\x00"s);
  EXPECT_EQ(u(1ULL << 32), "\xcf\x00\x00\x00\x01\x00\x00\x00\x00"s);
  EXPECT_EQ(i(5), "\x05"s);
  EXPECT_EQ(i(-1), "\xff"s);
  EXPECT_EQ(i(-32), "\xe0"s);
  EXPECT_EQ(i(-33), "\xd0\xdf"s);
  EXPECT_EQ(i(-128), "\xd0\x80"s);
  EXPECT_EQ(i(-129), "\xd1\xff\x7f"s);
  EXPECT_EQ(i(-32769), "\xd2\xff\xff\x7f\xff"s);
  EXPECT_EQ(i(-2147483649), "\xd3\xff\xff\xff\xff\x7f\xff\xff\xff"s);
}

TEST(MsgpackWriterTest, WritesTheOtherTypesAsSpecified) {
  EXPECT_EQ(written([](auto& out) { out.nil(); }), "\xc0"s);
  EXPECT_EQ(written([](auto& out) { out.boolean(false); }), "\xc2"s);
  EXPECT_EQ(written([](auto& out) { out.boolean(true); }), "\xc3"s);
  EXPECT_EQ(written([](auto& out) { out.real(1.0); }), "\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00"s);
  EXPECT_EQ(written([](auto& out) { out.string("abc"); }),
            "\xa3"
            "abc"s);
  EXPECT_EQ(written([](auto& out) { out.string(std::string(32, 'x')); }).substr(0, 2), "\xd9\x20"s);
  EXPECT_EQ(written([](auto& out) { out.string(std::string(256, 'x')); }).substr(0, 3),
            "\xda\x01\x00"s);
  EXPECT_EQ(written([](auto& out) { out.string(std::string(65536, 'x')); }).substr(0, 5),
            "\xdb\x00\x01\x00\x00"s);
  EXPECT_EQ(written([](auto& out) { out.array(15); }), "\x9f"s);
  EXPECT_EQ(written([](auto& out) { out.array(16); }), "\xdc\x00\x10"s);
  EXPECT_EQ(written([](auto& out) { out.array(65536); }), "\xdd\x00\x01\x00\x00"s);
  EXPECT_EQ(written([](auto& out) { out.map(2); }), "\x82"s);
  EXPECT_EQ(written([](auto& out) { out.map(16); }), "\xde\x00\x10"s);
  EXPECT_EQ(written([](auto& out) { out.map(65536); }), "\xdf\x00\x01\x00\x00"s);
}

MsgpackToken read_one(const std::string& bytes) {
  MsgpackReader in(bytes);
  MsgpackToken token;
  EXPECT_TRUE(in.next(token)) << testing::PrintToString(bytes);
  EXPECT_EQ(in.left(), 0U);
  return token;
}

TEST(MsgpackReaderTest, ReadsEveryIntegerItWrites) {
  std::mt19937_64 random(1);
  for (int bits = 0; bits < 64; ++bits) {
    const std::uint64_t value = (1ULL << bits) + (random() & ((1ULL << bits) - 1));
    const MsgpackToken token = read_one(written([&](auto& out) { out.unsigned_integer(value); }));
    EXPECT_EQ(token.type, Type::kUnsigned);
    EXPECT_EQ(token.unsigned_value, value);
    const auto below = static_cast<std::int64_t>(~value);
    if (below >= 0) continue;
    const MsgpackToken negative = read_one(written([&](auto& out) { out.signed_integer(below); }));
    EXPECT_EQ(negative.type, Type::kNegative);
    EXPECT_EQ(negative.negative_value, below);
  }
}

TEST(MsgpackReaderTest, ReadsFormsThatOthersWrite) {
  EXPECT_EQ(read_one("\xca\x3f\xc0\x00\x00"s).real_value, 1.5);  // float 32
  EXPECT_EQ(read_one("\xc4\x02"
                     "ab"s)
                .text,
            "ab");  // bin 8
  EXPECT_EQ(read_one("\xd9\x02"
                     "ab"s)
                .text,
            "ab");                                      // str 8 for a short one
  EXPECT_EQ(read_one("\xd0\x05"s).unsigned_value, 5U);  // int 8 above 0
  EXPECT_EQ(read_one("\xd5\x01"
                     "ab"s)
                .type,
            Type::kExtension);  // fixext 2
  EXPECT_EQ(read_one("\xc7\x03\x01"
                     "abc"s)
                .type,
            Type::kExtension);  // ext 8
}

TEST(MsgpackReaderTest, RefusesAHeaderThatClaimsMoreThanThereIs) {
  for (const std::string& bytes : {"\xdd\xff\xff\xff\xff\x01"s, "\xdf\xff\xff\xff\xff\x01\x01"s,
                                   "\xdb\xff\xff\xff\xff"
                                   "ab"s,
                                   "\xc6\xff\xff\xff\xff"
                                   "ab"s,
                                   "\xc9\xff\xff\xff\xff\x01"
                                   "ab"s,
                                   "\x92\x01"s, "\x81\x01"s,
                                   "\xa2"
                                   "a"s,
                                   "\xce\x01\x01"s, "\xd9"s, ""s, "\xc1"s}) {
    MsgpackReader in(bytes);
    MsgpackToken token;
    EXPECT_FALSE(in.next(token)) << testing::PrintToString(bytes);
  }
}

TEST(MsgpackReaderTest, SkipsDeeplyNestedValuesWithoutRecursion) {
  const std::string nested = std::string(1000000, '\x91') + "\x01";
  MsgpackReader in(nested);
  EXPECT_TRUE(in.skip());
  EXPECT_EQ(in.left(), 0U);
}

}  // namespace
}  // namespace antdt::wire
