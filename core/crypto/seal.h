// One direction of a conversation, encrypted and authenticated in pieces: AES-256-GCM, with the
// number of the piece as its nonce.
//
// A piece can be opened only as the next one, and only unchanged. A piece that is changed, missing,
// repeated or out of order ends the conversation. The key must belong to this direction of this
// conversation alone, so that no nonce is used twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/crypto/secret.h"

struct evp_cipher_ctx_st;

namespace antdt::crypto {

inline constexpr std::size_t kSealBytes = 16;  // by which a sealed piece is longer

namespace detail {
struct FreeCipher {
  void operator()(evp_cipher_ctx_st* cipher) const;
};
using Cipher = std::unique_ptr<evp_cipher_ctx_st, FreeCipher>;
}  // namespace detail

class Sealer {
 public:
  explicit Sealer(const Secret& key);
  // `open` is not encrypted, but authenticated with the rest. `sealed` must have as many bytes as
  // `plain`, which it may not overlap; `seal` has kSealBytes.
  void seal(std::span<const std::byte> open, std::span<const std::byte> plain,
            std::span<std::byte> sealed, std::span<std::byte> seal);

 private:
  detail::Cipher cipher_;
  std::uint64_t next_ = 0;
};

class Opener {
 public:
  explicit Opener(const Secret& key);
  // Decrypts in place. False if this is not the piece that was sealed next, or if it was changed;
  // then `bytes` is meaningless, and no further piece may be opened.
  [[nodiscard]] bool open(std::span<const std::byte> open, std::span<std::byte> bytes,
                          std::span<const std::byte> seal);

 private:
  detail::Cipher cipher_;
  std::uint64_t next_ = 0;
};

}  // namespace antdt::crypto
