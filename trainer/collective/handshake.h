// How two members of a generation prove to each other that they are, before anything else goes
// over their connection. Pure: bytes in, bytes out, nonces given.
//
//   dialler                                               listener
//   Hello: who, to whom, nonce d, mac("hello", d)   -->
//                                     <--   Answer: nonce l, mac("answer", d, l)
//   Proof: mac("proof", d, l)                       -->
//
// Each mac is HMAC-SHA-256 with the generation's secret over the words above, job, generation,
// size, both ranks, whether tensors are encrypted, and the nonces: none can be sent back to
// where it came from, or be used on another connection. The mac of the Hello tells a listener at
// once who is no member, so that a stranger holds no place; as everything in it may have been
// heard elsewhere, the Proof answers a nonce of the listener's own.
//
// Afterwards both have the same two keys, of one direction each, in which both nonces are: with
// `encrypt` all that follows is sealed with them (core/crypto/seal.h).
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

// What the members of a generation were told, and only they.
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
    kListening,  // for a Hello
    kAsked,      // a member's Hello is there: to be answered by welcome() or refuse()
    kAwaitsAnswer,
    kAwaitsProof,
    kMet,
    kOver,  // no member, or not to be had: see why()
  };

  // Of who dials: what opening() answers is to be sent first.
  [[nodiscard]] static Handshake dialling(const Self& self, std::uint32_t peer,
                                          const crypto::Nonce& nonce);
  [[nodiscard]] static Handshake listening(const Self& self, const crypto::Nonce& nonce);

  [[nodiscard]] std::string opening() const;
  // The next bytes that arrived, at most wants() of them. What is to be sent in return.
  [[nodiscard]] std::string heard(std::span<const std::byte> bytes);
  [[nodiscard]] std::size_t wants() const;

  // kAsked: what to send. A member that is not to be connected is told so.
  [[nodiscard]] std::string welcome();
  [[nodiscard]] std::string refuse();

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] std::uint32_t peer() const { return peer_; }
  // Of the other end; of a member's Hello it was never heard before.
  [[nodiscard]] const crypto::Nonce& peer_nonce() const { return peer_nonce_; }
  // kOver: in words; a listener has none for who is simply no member.
  [[nodiscard]] const std::string& why() const { return why_; }
  // kMet.
  [[nodiscard]] LinkKeys keys() const;

 private:
  // As they lie in memory: values of tensors go over the same connections so, and members with
  // another order of bytes find out here.
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
  // Of the releases before 0.2. Whoever sends one is told in its own words.
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
