#include "core/transport/zmtp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace antdt::transport {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// The bytes of a ROUTER are written by hand, so that the reader is not tested against its own
// writer.
std::string greeting(char major = 3, const std::string& mechanism = "NULL") {
  std::string out = "\xff" + std::string(8, '\0') + "\x7f";
  out += major;
  out += '\1';
  out += mechanism;
  out.resize(64, '\0');
  return out;
}

std::string frame(int flags, const std::string& body) {
  return std::string{static_cast<char>(flags), static_cast<char>(body.size())} + body;
}

std::string ready(const std::string& type = "ROUTER") {
  std::string body("\5READY\13Socket-Type\0\0\0", 21);
  body += static_cast<char>(type.size());
  return frame(4, body + type + std::string("\10Identity\0\0\0\0", 13));
}

std::string two(const std::string& envelope, const std::string& body) {
  return frame(1, envelope) + frame(0, body);
}

std::vector<std::string> bodies(ZmtpReader& reader) {
  std::vector<std::string> found;
  while (const auto packet = reader.next()) found.push_back(packet->envelope + "|" + packet->body);
  return found;
}

ZmtpReader met() {
  ZmtpReader reader;
  reader.feed(greeting() + ready());
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.ready()) << reader.problem();
  return reader;
}

std::string problem_after(const std::string& bytes) {
  ZmtpReader reader;
  reader.feed(bytes);
  EXPECT_FALSE(reader.next());
  return reader.problem();
}

TEST(Zmtp, TheOpeningIsAGreetingOf64BytesAndReadyOfADealer) {
  const std::string opening = zmtp_opening();
  EXPECT_EQ(opening.substr(0, 12), std::string("\xff\0\0\0\0\0\0\0\0\x7f\3\0", 12));
  EXPECT_EQ(opening.substr(12, 20), "NULL" + std::string(16, '\0'));
  EXPECT_EQ(opening.substr(32, 32), std::string(32, '\0'));
  EXPECT_EQ(opening[64], '\4');
  EXPECT_THAT(opening, HasSubstr(std::string("\13Socket-Type\0\0\0\6DEALER", 22)));
}

TEST(Zmtp, SingleBytesAreReadLikeOneBlock) {
  const std::string all = greeting() + ready() + two("e1", "b1") + two("", "") + two("e3", "b3");
  ZmtpReader reader;
  std::vector<std::string> found;
  for (const char byte : all) {
    reader.feed({&byte, 1});
    for (std::string& body : bodies(reader)) found.push_back(std::move(body));
  }
  EXPECT_THAT(found, ElementsAre("e1|b1", "|", "e3|b3"));
  ZmtpReader at_once;
  at_once.feed(all);
  EXPECT_THAT(bodies(at_once), ElementsAre("e1|b1", "|", "e3|b3"));
}

TEST(Zmtp, APacketIsWrittenAsItIsRead) {
  for (const std::size_t size : {0U, 1U, 255U, 256U, 70000U}) {
    std::string bytes;
    append_zmtp(bytes, {"", "", std::string(size, 'e'), std::string(size / 2, 'b')});
    ZmtpReader reader = met();
    reader.feed(bytes);
    const auto packet = reader.next();
    ASSERT_TRUE(packet) << size;
    EXPECT_EQ(packet->envelope, std::string(size, 'e'));
    EXPECT_EQ(packet->body, std::string(size / 2, 'b'));
    EXPECT_FALSE(reader.next());
    EXPECT_EQ(reader.problem(), "");
  }
}

TEST(Zmtp, AMessageOfAnotherNumberOfFramesIsDropped) {
  ZmtpReader reader = met();
  reader.feed(frame(0, "alone") + frame(1, "a") + frame(1, "b") + frame(1, "c") + frame(0, "d") +
              two("good", "one"));
  EXPECT_THAT(bodies(reader), ElementsAre("good|one"));
  EXPECT_EQ(reader.problem(), "");
}

TEST(Zmtp, AHeartbeatIsAnsweredAlsoBetweenTwoFrames) {
  ZmtpReader reader = met();
  const std::string ping = frame(4, std::string("\4PING\0\144", 7) + "context");
  reader.feed(frame(1, "e") + ping + frame(0, "b"));
  EXPECT_THAT(bodies(reader), ElementsAre("e|b"));
  EXPECT_EQ(reader.take_answers(), frame(4, "\4PONGcontext"));
  EXPECT_EQ(reader.take_answers(), "");
}

TEST(Zmtp, OtherCommandsOfAPeerAreForAnotherVersion) {
  ZmtpReader reader = met();
  reader.feed(frame(4, "\4PONG") + frame(4, "\7UNKNOWN and more") + two("e", "b"));
  EXPECT_THAT(bodies(reader), ElementsAre("e|b"));
  EXPECT_EQ(reader.take_answers(), "");
}

TEST(Zmtp, ManyHeartbeatsAtOnceDoNotMakeManyAnswers) {
  ZmtpReader reader = met();
  std::string pings;
  for (int i = 0; i < 100000; ++i) pings += frame(4, std::string("\4PING\0\144", 7));
  reader.feed(pings);
  EXPECT_FALSE(reader.next());
  EXPECT_LT(reader.take_answers().size(), 8192U);
}

TEST(Zmtp, APeerThatSpeaksSomethingElseIsRefused) {
  EXPECT_THAT(problem_after("SSH-2.0-OpenSSH_9.2"), HasSubstr("does not speak ZMTP"));
  EXPECT_THAT(problem_after("H"), HasSubstr("does not speak ZMTP"));
  EXPECT_THAT(problem_after("\xff" + std::string(9, '\0')), HasSubstr("does not speak ZMTP"));
  EXPECT_THAT(problem_after(greeting(1)), HasSubstr("ZMTP 1"));
  EXPECT_THAT(problem_after(greeting(3, "CURVE")), HasSubstr("'CURVE'"));
  EXPECT_THAT(problem_after(greeting() + ready("PUB")), HasSubstr("'PUB'"));
  EXPECT_THAT(problem_after(greeting() + frame(4, std::string("\5READY\13Socket", 13))),
              HasSubstr("cut short"));
  EXPECT_THAT(problem_after(greeting() + frame(4, "\5ERROR\4busy")), HasSubstr("busy"));
  EXPECT_THAT(problem_after(greeting() + two("e", "b")), HasSubstr("before READY"));
  EXPECT_THAT(problem_after(greeting() + frame(4, "\4PING")), HasSubstr("not READY"));
  EXPECT_THAT(problem_after(greeting() + ready() + frame(8, "")), HasSubstr("flags 0x08"));
  EXPECT_THAT(problem_after(greeting() + ready() + frame(5, "\4PONG")), HasSubstr("flags 0x05"));
  EXPECT_THAT(problem_after(greeting() + ready() + frame(4, "")), HasSubstr("no name"));
  EXPECT_THAT(problem_after(greeting() + ready() + frame(4, "\5ERROR")), HasSubstr("refuses"));
}

TEST(Zmtp, AFrameThatIsTooLargeIsRefusedByItsHead) {
  const std::string head("\2\0\0\0\0\4\0\0\1", 9);  // 64 MiB and one byte
  EXPECT_THAT(problem_after(greeting() + ready() + head), HasSubstr("67108865 bytes"));
  ZmtpReader reader = met();
  reader.feed(std::string("\2\0\0\0\0\4\0\0\0", 9));
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.problem(), "") << "one that large is awaited";
}

TEST(Zmtp, NothingIsReadAfterAnError) {
  ZmtpReader reader = met();
  reader.feed(two("e", "b") + frame(8, "") + two("never", "read"));
  EXPECT_THAT(bodies(reader), ElementsAre("e|b"));
  EXPECT_NE(reader.problem(), "");
  reader.feed(two("never", "read"));
  EXPECT_THAT(bodies(reader), SizeIs(0));
}

}  // namespace
}  // namespace antdt::transport
