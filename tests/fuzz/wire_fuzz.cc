// The first byte chooses the message, the rest is its frame. A message that can be read is written
// and read again, which must give the same bytes.
#include <array>
#include <utility>

#include "core/wire/packet.h"
#include "tests/fuzz/support/fuzz.h"
#include "tests/fuzz/support/wire_messages.h"

namespace antdt::fuzz {
namespace {

template <class T>
void decode_and_back(std::string_view frame) {
  const Result<T> message = wire::decode<T>(frame);
  if (!message) return;
  const std::string written = wire::encode(*message);
  const Result<T> again = wire::decode<T>(written);
  ANTDT_CHECK(again.has_value(), "what was encoded cannot be decoded: {}", again.error().message);
  ANTDT_CHECK(wire::encode(*again) == written, "another message of {} bytes", written.size());
}

template <std::size_t... I>
void decode_as(std::size_t which, std::string_view frame, std::index_sequence<I...>) {
  ((I == which ? decode_and_back<std::tuple_element_t<I, WireMessages>>(frame) : void()), ...);
}

// A whole packet: both frames are the peer's.
void open_packet(std::string_view envelope, std::string_view body) {
  const wire::Packet packet{{}, {}, std::string(envelope), std::string(body)};
  if (const auto hello = wire::open_reply<wire::Hello>(packet)) {
    (void)wire::negotiate_version(*hello);
  }
  (void)wire::open_reply<wire::Grants>(packet);
}

}  // namespace
}  // namespace antdt::fuzz

ANTDT_FUZZ_TARGET(wire)(const std::uint8_t* data, std::size_t size) {
  using namespace antdt::fuzz;
  constexpr std::size_t kTypes = std::tuple_size_v<WireMessages>;
  Input input(data, size);
  const std::size_t which = input.byte();
  if (which < kTypes) {
    decode_as(which, input.rest(), std::make_index_sequence<kTypes>());
  } else {
    const std::string_view envelope = input.part();
    open_packet(envelope, input.rest());
  }
  return 0;
}
