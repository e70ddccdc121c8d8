// How two members of a generation prove to each other that they are members, before anything else
// is sent over their connection. Pure: bytes in, bytes out; nonces are passed in.
//
//   dialler                                               listener
//   Hello: who, to whom, nonce d, mac("hello", d)   -->
//                                     <--   Answer: nonce l, mac("answer", d, l)
//   Proof: mac("proof", d, l)                       -->
//
// Each mac is HMAC-SHA-256 with the generation's secret over these words, job, generation, size,
// both ranks, whether tensors are encrypted, and the nonces. So no mac can be sent back to its
// sender or used on another connection. The mac of the Hello tells a listener at once that the peer
// is not a member, so a stranger takes no slot. Because a Hello may be a recording, the Proof
// answers a nonce that the listener chose.
//
// Afterwards both have the same two keys, one for each direction, which depend on both nonces. With
// `encrypt`, everything that follows is sealed with them (core/crypto/seal.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/crypto/secret.h"
#include "core/ids.h"
#include "core/result.h"

namespace antdt::trainer {

// What the members of a generation were told, and nobody else.
struct GroupKey {
  crypto::Secret secret = {};
  std::string job = {};
  Generation generation = {};
};

struct LinkKeys {
  crypto::Secret sent;
  crypto::Secret received;
};

class Handshake {
 public:
  struct Self {
    GroupKey key;
    std::uint32_t rank = 0;
    std::uint32_t size = 0;
    bool encrypt = false;
  };
  enum class State : std::uint8_t {
    kListening,  // waits for a Hello
    kAsked,      // has a member's Hello, to be answered by welcome() or refuse()
    kAwaitsAnswer,
    kAwaitsProof,
    kMet,
    kOver,  // the peer is not a member, or cannot be connected: see why()
  };

  // For the dialling side: first sends what opening() returns.
  [[nodiscard]] static Handshake dialling(const Self& self, std::uint32_t peer,
                                          const crypto::Nonce& nonce);
  [[nodiscard]] static Handshake listening(const Self& self, const crypto::Nonce& nonce);

  [[nodiscard]] std::string opening() const;
  // Takes the next bytes that arrived, at most wants() of them. Returns what to send in reply.
  [[nodiscard]] std::string heard(std::span<const std::byte> bytes);
  [[nodiscard]] std::size_t wants() const;

  // In kAsked: what to send to accept, or to refuse, a member.
  [[nodiscard]] std::string welcome();
  [[nodiscard]] std::string refuse();

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] std::uint32_t peer() const { return peer_; }
  // The nonce of the other end. The nonce of a member's Hello was never used before.
  [[nodiscard]] const crypto::Nonce& peer_nonce() const { return peer_nonce_; }
  // In kOver: the reason in words. A listener has none for a peer that is simply not a member.
  [[nodiscard]] const std::string& why() const { return why_; }
  // In kMet.
  [[nodiscard]] LinkKeys keys() const;

 private:
  // Sent in this machine's byte order: tensor values go over the same connections in that order,
  // and members with another byte order find out here.
  struct Hello {
    std::uint64_t magic = 0;
    std::uint32_t size = 0;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t encrypt = 0;
    crypto::Nonce nonce{};
    crypto::Mac mac{};
  };
  enum class Admission : std::uint32_t { kNotExpected, kWelcome, kOtherEncryption };
  struct Answer {
    std::uint64_t magic = 0;
    Admission admission{};
    std::uint32_t unused = 0;
    crypto::Nonce nonce{};
    crypto::Mac mac{};
  };
  // The hello of releases before 0.2. Its sender is answered in that format.
  struct EarlierHello {
    std::uint64_t magic = 0;
    std::uint64_t key = 0;
    std::uint32_t size = 0;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t welcome = 0;
  };

  Handshake(const Self& self, bool dialled, std::uint32_t peer, const crypto::Nonce& nonce);
  [[nodiscard]] crypto::Mac mac(std::string_view what, bool both_nonces, bool encrypt) const;
  [[nodiscard]] crypto::Transcript transcript(std::string_view what, bool both_nonces,
                                              bool encrypt) const;
  [[nodiscard]] std::uint64_t heard_magic() const;
  [[nodiscard]] std::string on_earlier_release();
  [[nodiscard]] std::string on_hello();
  [[nodiscard]] std::string on_answer();
  [[nodiscard]] std::string on_proof();
  void end(std::string why);

  Self self_;
  bool dialled_ = false;
  State state_ = State::kListening;
  std::uint32_t peer_ = 0;
  crypto::Nonce nonce_;
  crypto::Nonce peer_nonce_{};
  std::array<std::byte, sizeof(Hello)> buffer_{};  // of the message that is arriving
  std::size_t bytes_ = 0;
  std::string why_;
};

}  // namespace antdt::trainer
