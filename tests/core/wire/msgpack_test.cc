#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

#include "core/wire/codec.h"
#include "core/wire/envelope.h"
#include "core/wire/msgpack_writer.h"

namespace antdt::wire {
namespace {

using namespace std::string_literals;

std::string written(const std::function<void(MsgpackWriter&)>& write) {
  MsgpackWriter out;
  write(out);
  return out.take();
}

// Bytes from the specification's format overview, at each change of width.
TEST(MsgpackTest, WritesIntegersInTheFewestBytes) {
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

TEST(MsgpackTest, WritesTheOtherTypesAsSpecified) {
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

template <class T>
T read_as(const std::string& bytes) {
  const Result<T> read = decode<T>(bytes);
  EXPECT_TRUE(read) << testing::PrintToString(bytes) << ": " << read.error().message;
  return read.value_or(T{});
}

TEST(MsgpackTest, ReadsEveryIntegerThatItWrites) {
  std::mt19937_64 random(1);
  for (int bits = 0; bits < 64; ++bits) {
    const std::uint64_t value = (1ULL << bits) + (random() & ((1ULL << bits) - 1));
    EXPECT_EQ(read_as<std::uint64_t>(written([&](auto& out) { out.unsigned_integer(value); })),
              value);
    const auto below = static_cast<std::int64_t>(~value);
    if (below >= 0) continue;
    EXPECT_EQ(read_as<std::int64_t>(written([&](auto& out) { out.signed_integer(below); })), below);
  }
}

TEST(MsgpackTest, ReadsFormsThatOthersWrite) {
  EXPECT_EQ(read_as<double>("\xca\x3f\xc0\x00\x00"s), 1.5);  // float 32
  EXPECT_EQ(read_as<double>("\x05"s), 5.0);                  // a whole number as an integer
  EXPECT_EQ(read_as<double>("\xff"s), -1.0);
  EXPECT_EQ(read_as<std::string>("\xc4\x02"
                                 "ab"s),
            "ab");  // bin 8
  EXPECT_EQ(read_as<std::string>("\xd9\x02"
                                 "ab"s),
            "ab");                                     // str 8 for a short one
  EXPECT_EQ(read_as<std::string>("\xd9\x00"s), "");    // and for none
  EXPECT_EQ(read_as<std::uint64_t>("\xd0\x05"s), 5U);  // int 8 above 0
  EXPECT_EQ(read_as<std::uint64_t>("\xd3\x00\x00\x00\x00\x00\x00\x00\x07"s), 7U);
  EXPECT_FALSE(
      decode<std::string>("\xd5\x01"
                          "ab"s));  // fixext 2
  EXPECT_FALSE(
      decode<std::string>("\xc7\x03\x01"
                          "abc"s));  // ext 8
}

// A value below a key that no field has.
std::string unknown_field(const std::string& value) { return "\x81\xa1z" + value; }

TEST(MsgpackTest, SkipsValuesOfEveryTypeThatItDoesNotKnow) {
  for (const std::string& value :
       {"\xc0"s, "\xc2"s, "\x05"s, "\xe0"s, "\xca\x3f\xc0\x00\x00"s, "\xd3\x80\0\0\0\0\0\0\0"s,
        "\xa0"s, "\xc4\x01x"s, "\xd4\x01x"s, "\xc7\x00\x01"s, "\x90"s, "\x80"s,
        "\x92\x81\x01\x80\x91\xa1x"s, "\x81\x91\x01\xa1v"s}) {
    EXPECT_TRUE(decode<Refused>(unknown_field(value))) << testing::PrintToString(value);
  }
}

TEST(MsgpackTest, RefusesAHeaderThatClaimsMoreThanThereIs) {
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
    EXPECT_FALSE(decode<std::string>(bytes)) << testing::PrintToString(bytes);
    EXPECT_FALSE(decode<std::vector<std::uint64_t>>(bytes)) << testing::PrintToString(bytes);
    EXPECT_FALSE(decode<Refused>(bytes)) << testing::PrintToString(bytes);
    EXPECT_FALSE(decode<Refused>(unknown_field(bytes))) << testing::PrintToString(bytes);
  }
}

TEST(MsgpackTest, SkipsDeeplyNestedValuesWithoutRecursion) {
  EXPECT_TRUE(decode<Refused>(unknown_field(std::string(1000000, '\x91') + "\x01")));
}

}  // namespace
}  // namespace antdt::wire
