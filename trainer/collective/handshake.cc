#include "trainer/collective/handshake.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/check.h"

namespace antdt::trainer {
namespace {

constexpr std::uint64_t kMagic = 0x32'6c6c'6f63'5444;         // "DTcoll2"
constexpr std::uint64_t kEarlierMagic = 0x31'6c6c'6f63'5444;  // "DTcoll1"

template <class T>
std::string text_of(const T& message) {
  static_assert(std::has_unique_object_representations_v<T>, "padding would be sent, too");
  std::string text(sizeof(T), '\0');
  std::memcpy(text.data(), &message, sizeof(T));
  return text;
}

template <class T>
T read_as(std::span<const std::byte> bytes) {
  ANTDT_CHECK(bytes.size() >= sizeof(T), "{} bytes are no whole message", bytes.size());
  T message;
  std::memcpy(&message, bytes.data(), sizeof(T));
  return message;
}

const char* in_words(bool encrypt) { return encrypt ? "encrypts tensors" : "sends tensors plain"; }

}  // namespace

Handshake::Handshake(const Self& self, bool dialled, std::uint32_t peer, const crypto::Nonce& nonce)
    : self_(self),
      dialled_(dialled),
      state_(dialled ? State::kAwaitsAnswer : State::kListening),
      peer_(peer),
      nonce_(nonce) {}

Handshake Handshake::dialling(const Self& self, std::uint32_t peer, const crypto::Nonce& nonce) {
  return {self, true, peer, nonce};
}

Handshake Handshake::listening(const Self& self, const crypto::Nonce& nonce) {
  return {self, false, 0, nonce};
}

// Ranks and nonces in the order dialler, listener, whichever of them sends it.
crypto::Transcript Handshake::transcript(std::string_view what, bool both_nonces,
                                         bool encrypt) const {
  crypto::Transcript t("antdt collective");
  t << what << self_.key.job << self_.key.generation.value << self_.size;
  t << (dialled_ ? self_.rank : peer_) << (dialled_ ? peer_ : self_.rank);
  t << static_cast<std::uint64_t>(encrypt ? 1 : 0) << (dialled_ ? nonce_ : peer_nonce_);
  if (both_nonces) t << (dialled_ ? peer_nonce_ : nonce_);
  return t;
}

crypto::Mac Handshake::mac(std::string_view what, bool both_nonces, bool encrypt) const {
  return self_.key.secret.mac(transcript(what, both_nonces, encrypt).text());
}

std::string Handshake::opening() const {
  Hello hello{kMagic, self_.size, self_.rank, peer_, self_.encrypt ? 1U : 0U, nonce_, {}};
  hello.mac = mac("hello", false, self_.encrypt);
  return text_of(hello);
}

std::size_t Handshake::wants() const {
  switch (state_) {
    case State::kListening:
      return sizeof(Hello) - bytes_;
    case State::kAwaitsAnswer:
      return sizeof(Answer) - bytes_;
    case State::kAwaitsProof:
      return sizeof(crypto::Mac) - bytes_;
    default:
      return 0;
  }
}

std::uint64_t Handshake::heard_magic() const { return read_as<std::uint64_t>(buffer_); }

std::string Handshake::heard(std::span<const std::byte> bytes) {
  if (wants() == 0) return "";
  const std::size_t taken = std::min(bytes.size(), wants());
  std::memcpy(buffer_.data() + bytes_, bytes.data(), taken);
  bytes_ += taken;
  // The hello of an earlier release is shorter, and nothing follows it.
  const bool begins = state_ != State::kAwaitsProof && bytes_ >= sizeof(std::uint64_t);
  if (begins && heard_magic() == kEarlierMagic) return on_earlier_release();
  if (begins && heard_magic() != kMagic) {
    end(dialled_ ? "who listens there is no worker of AntDT" : "");
    return "";
  }
  if (wants() > 0) return "";
  bytes_ = 0;
  if (state_ == State::kListening) return on_hello();
  return state_ == State::kAwaitsAnswer ? on_answer() : on_proof();
}

std::string Handshake::on_earlier_release() {
  if (dialled_) {
    end("who listens there greets as an earlier release of AntDT does: install the same release "
        "on all hosts");
    return "";
  }
  if (bytes_ < sizeof(EarlierHello)) return "";
  const auto hello = read_as<EarlierHello>(buffer_);
  end(
      fmt::format("somebody that says it is rank {} greets as an earlier release of AntDT does, "
                  "which proves nothing: install the same release on all hosts",
                  hello.from));
  return text_of(EarlierHello{kEarlierMagic, 0, self_.size, self_.rank, hello.from, 0});
}

// First of all the mac is checked, and a peer that is not a member is told nothing.
std::string Handshake::on_hello() {
  const auto hello = read_as<Hello>(buffer_);
  peer_ = hello.from;
  peer_nonce_ = hello.nonce;
  const bool ours = hello.size == self_.size && hello.to == self_.rank &&
                    crypto::same(hello.mac, mac("hello", false, hello.encrypt != 0));
  if (!ours) {
    end("");
    return text_of(Answer{kMagic, Admission::kNotExpected, 0, {}, {}});
  }
  if ((hello.encrypt != 0) != self_.encrypt) {
    end(fmt::format("rank {} {}, and rank {} {}: [cluster] encrypt differs", peer_,
                    in_words(hello.encrypt != 0), self_.rank, in_words(self_.encrypt)));
    return text_of(Answer{kMagic, Admission::kOtherEncryption, 0, {}, {}});
  }
  state_ = State::kAsked;
  return "";
}

std::string Handshake::welcome() {
  ANTDT_CHECK(state_ == State::kAsked, "nobody asked");
  state_ = State::kAwaitsProof;
  return text_of(
      Answer{kMagic, Admission::kWelcome, 0, nonce_, mac("answer", true, self_.encrypt)});
}

std::string Handshake::refuse() {
  ANTDT_CHECK(state_ == State::kAsked, "nobody asked");
  end("");
  return text_of(Answer{kMagic, Admission::kNotExpected, 0, {}, {}});
}

std::string Handshake::on_answer() {
  const auto answer = read_as<Answer>(buffer_);
  peer_nonce_ = answer.nonce;
  if (answer.admission == Admission::kOtherEncryption) {
    end(fmt::format("it says that [cluster] encrypt is another there; this member {}",
                    in_words(self_.encrypt)));
  } else if (answer.admission != Admission::kWelcome) {
    end("it was not expected there: who listens belongs to another generation, or has that rank "
        "connected already");
  } else if (!crypto::same(answer.mac, mac("answer", true, self_.encrypt))) {
    end("who listens there cannot prove that it is a member of this generation");
  } else {
    state_ = State::kMet;
    return text_of(mac("proof", true, self_.encrypt));
  }
  return "";
}

std::string Handshake::on_proof() {
  if (crypto::same(read_as<crypto::Mac>(buffer_), mac("proof", true, self_.encrypt))) {
    state_ = State::kMet;
  } else {
    end("");
  }
  return "";
}

void Handshake::end(std::string why) {
  state_ = State::kOver;
  why_ = std::move(why);
}

LinkKeys Handshake::keys() const {
  ANTDT_CHECK(state_ == State::kMet, "keys before both have proved who they are");
  const auto key = [&](std::string_view direction) {
    return self_.key.secret.derive(transcript(direction, true, self_.encrypt).text());
  };
  const crypto::Secret to_listener = key("tensors to the listener");
  const crypto::Secret to_dialler = key("tensors to the dialler");
  return dialled_ ? LinkKeys{to_listener, to_dialler} : LinkKeys{to_dialler, to_listener};
}

}  // namespace antdt::trainer
