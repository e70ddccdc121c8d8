// Input: the bytes of a peer to a member that listens, or that dialled it. The way they were cut
// changes nothing, and a peer that does not know the secret is never accepted.
#include "tests/fuzz/support/fuzz.h"
#include "trainer/collective/handshake.h"

namespace {

using antdt::trainer::Handshake;
using State = Handshake::State;

Handshake member(bool dials) {
  const Handshake::Self self{{antdt::crypto::Secret().derive("unknown"), "job", {}}, 2, 4, false};
  antdt::crypto::Nonce nonce;
  nonce.fill(std::byte{0x5a});
  return dials ? Handshake::dialling(self, 3, nonce) : Handshake::listening(self, nonce);
}

struct Heard {
  std::string replies;
  State state{};
  std::string why;
  bool operator==(const Heard&) const = default;
};

Heard in_pieces(bool dials, std::string_view bytes, std::size_t piece) {
  Handshake handshake = member(dials);
  Heard heard;
  while (!bytes.empty() && handshake.wants() > 0) {
    const std::string_view part = bytes.substr(0, std::min(piece, handshake.wants()));
    bytes.remove_prefix(part.size());
    heard.replies += handshake.heard(std::as_bytes(std::span(part)));
  }
  heard.state = handshake.state();
  heard.why = handshake.why();
  return heard;
}

}  // namespace

ANTDT_FUZZ_TARGET(handshake)(const std::uint8_t* data, std::size_t size) {
  antdt::fuzz::Input input(data, size);
  const std::size_t how = input.byte();
  const std::string_view bytes = input.rest();
  const Heard whole = in_pieces(how % 2 == 0, bytes, bytes.size() + 1);
  const Heard pieces = in_pieces(how % 2 == 0, bytes, 1 + how / 2);
  ANTDT_CHECK(whole == pieces, "cut into pieces of {} bytes it is heard otherwise", 1 + how / 2);
  ANTDT_CHECK(whole.state != State::kMet && whole.state != State::kAsked &&
                  whole.state != State::kAwaitsProof,
              "somebody without the secret is taken for a member");
  return 0;
}
