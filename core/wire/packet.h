// Converts messages to packets and back.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "core/result.h"
#include "core/wire/codec.h"
#include "core/wire/envelope.h"

namespace antdt::wire {

// A peer that sends a larger frame is disconnected (core/transport/socket.h).
inline constexpr std::size_t kMostFrameBytes = std::size_t{64} << 20;

// Sets `envelope.kind` from the message.
template <class T>
[[nodiscard]] Packet make_packet(Envelope envelope, const T& message) {
  envelope.kind = std::string(T::kKind);
  return Packet{{}, {}, encode(envelope), encode(message)};
}
template <class T>
[[nodiscard]] Packet make_packet(const T& message) {
  return make_packet(Envelope{}, message);
}

// The same for a message that is encoded already, and whose kind `envelope` has.
[[nodiscard]] inline Packet make_packet_of(const Envelope& envelope, std::string body) {
  return Packet{{}, {}, encode(envelope), std::move(body)};
}

[[nodiscard]] inline Result<Envelope> open_envelope(const Packet& packet) {
  return decode<Envelope>(packet.envelope);
}

// Decodes the body of a reply as a T; a Refused becomes an error with its reason.
template <class T>
[[nodiscard]] Result<T> open_reply(const Packet& packet) {
  ANTDT_TRY(const Envelope envelope, open_envelope(packet));
  if (envelope.kind == Refused::kKind) {
    ANTDT_TRY(const Refused refused, decode<Refused>(packet.body));
    return fail(ErrorKind::kRefused, "{}", refused.reason);
  }
  if (envelope.kind != T::kKind) {
    return fail(ErrorKind::kCorrupt, "expected a '{}' message, got '{}'", T::kKind, envelope.kind);
  }
  return decode<T>(packet.body);
}

// The highest version in both ranges. The error names both ranges and both programs.
[[nodiscard]] Result<std::uint32_t> negotiate_version(const Hello& own, const Hello& peer);
// The same with this build's range.
[[nodiscard]] Result<std::uint32_t> negotiate_version(const Hello& peer);

}  // namespace antdt::wire
