#include "core/wire/packet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/wire/dispatch.h"
#include "core/wire/membership_messages.h"

namespace antdt::wire {
namespace {

using testing::HasSubstr;

TEST(PacketTest, CarriesTheKindOfItsMessage) {
  Envelope envelope;
  envelope.seq = 9;
  const Packet packet = make_packet(envelope, Form{1, 4, 99, {}, {}});
  EXPECT_EQ(open_envelope(packet)->kind, "form");
  EXPECT_EQ(open_envelope(packet)->seq, 9U);
  EXPECT_EQ(open_reply<Form>(packet)->key, 99U);
}

TEST(PacketTest, ARefusalIsAnErrorWithItsReason) {
  const auto reply =
      open_reply<Form>(make_packet(Refused{RefusalCode::kStale, "attempt 1 was replaced"}));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::kRefused);
  EXPECT_EQ(reply.error().message, "attempt 1 was replaced");
}

TEST(PacketTest, AnotherKindIsAnErrorThatNamesBoth) {
  const auto reply = open_reply<Form>(make_packet(Done{}));
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().message, HasSubstr("'form'"));
  EXPECT_THAT(reply.error().message, HasSubstr("'done'"));
}

// Describes the result of dispatch() for the body: the kind, and whether it could be read.
std::string dispatched(std::string_view kind, std::string_view body) {
  std::string said = "unknown";
  const bool known =
      dispatch<Form, Done, Refused>(kind, body, [&]<class T>(const Result<T>& message) {
        said = fmt::format("{}{}", T::kKind, message ? "" : ", unreadable");
      });
  EXPECT_EQ(known, said != "unknown");
  return said;
}

TEST(DispatchTest, ABodyIsReadAsTheMessageOfItsKindAndNoOther) {
  EXPECT_EQ(dispatched("form", encode(Form{})), "form");
  EXPECT_EQ(dispatched("done", encode(Done{})), "done");
  EXPECT_EQ(dispatched("refused", encode(Refused{})), "refused");
  EXPECT_EQ(dispatched("done", "no message"), "done, unreadable");
  EXPECT_EQ(dispatched("bye", encode(Bye{})), "unknown");
  EXPECT_EQ(dispatched("", ""), "unknown");
}

TEST(NegotiateVersionTest, TakesTheHighestThatBothSpeak) {
  EXPECT_EQ(negotiate_version(Hello{1, 3, "a"}, Hello{2, 5, "b"}).value(), 3U);
  EXPECT_EQ(negotiate_version(Hello{2, 5, "a"}, Hello{1, 3, "b"}).value(), 3U);
  EXPECT_EQ(negotiate_version(Hello{1, 1, "a"}, Hello{1, 1, "b"}).value(), 1U);
}

TEST(NegotiateVersionTest, NothingInCommonNamesBothRangesAndPrograms) {
  const auto version =
      negotiate_version(Hello{1, 2, "antdtd 0.1.0"}, Hello{3, 4, "antdt-jobd 9.0"});
  ASSERT_FALSE(version);
  EXPECT_EQ(version.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(version.error().message, HasSubstr("'antdtd 0.1.0' speaks 1 to 2"));
  EXPECT_THAT(version.error().message, HasSubstr("'antdt-jobd 9.0' speaks 3 to 4"));
}

TEST(NegotiateVersionTest, ARangeTurnedAroundIsRefused) {
  EXPECT_FALSE(negotiate_version(Hello{1, 4, "a"}, Hello{3, 2, "b"}));
}

}  // namespace
}  // namespace antdt::wire
