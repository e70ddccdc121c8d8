// One direction of a conversation, encrypted and authenticated piece by piece: AES-256-GCM, the
// piece's number is its nonce.
//
// A piece can be opened only as the next one, and only as it was sealed: one that is changed,
// missing, repeated or out of order ends the conversation. The key belongs to this direction of
// this conversation alone, so that no nonce is used twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/crypto/secret.h"

struct evp_cipher_ctx_st;

namespace antdt::crypto {

inline constexpr std::size_t kSealBytes = 16;  // that a piece is longer by

namespace detail {
struct FreeCipher {
  void operator()(evp_cipher_ctx_st* cipher) const;
};
using Cipher = std::unique_ptr<evp_cipher_ctx_st, FreeCipher>;
}  // namespace detail

class Sealer {
 public:
  explicit Sealer(const Secret& key);
  // `open` may be read by everybody, and is sealed with the rest against changes. `sealed` has
  // as many bytes as `plain`, which it may not overlap, `seal` has kSealBytes.
  void seal(std::span<const std::byte> open, std::span<const std::byte> plain,
            std::span<std::byte> sealed, std::span<std::byte> seal);

 private:
  detail::Cipher cipher_;
  std::uint64_t next_ = 0;
};

class Opener {
 public:
  explicit Opener(const Secret& key);
  // In place. False if this is not the piece that was sealed next, or if it was changed: what
  // `bytes` then holds is nothing, and no further piece may be opened.
  [[nodiscard]] bool open(std::span<const std::byte> open, std::span<std::byte> bytes,
                          std::span<const std::byte> seal);

 private:
  detail::Cipher cipher_;
  std::uint64_t next_ = 0;
};

}  // namespace antdt::crypto
