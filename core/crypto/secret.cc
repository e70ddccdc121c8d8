#include "core/crypto/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/check.h"

namespace antdt::crypto {
namespace {

Status fill_with_random(std::span<std::byte> bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = getrandom(bytes.data() + done, bytes.size() - done, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail_errno(ErrorKind::kInternal, errno, "drawing random bytes");
    done += static_cast<std::size_t>(n);
  }
  return {};
}

}  // namespace

Secret::~Secret() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

Result<Secret> Secret::random() {
  Secret secret;
  ANTDT_RETURN_IF_ERROR(fill_with_random(secret.bytes_));
  return secret;
}

Result<Secret> Secret::of(std::string_view bytes) {
  if (bytes.size() != kBytes) {
    return fail(ErrorKind::kCorrupt, "a secret has {} bytes and not {}", kBytes, bytes.size());
  }
  Secret secret;
  std::memcpy(secret.bytes_.data(), bytes.data(), kBytes);
  return secret;
}

std::string Secret::for_wire() const {
  return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
}

Mac Secret::mac(std::string_view text) const {
  Mac mac{};
  unsigned int size = 0;
  const auto* const made = HMAC(EVP_sha256(), bytes_.data(), static_cast<int>(bytes_.size()),
                                reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                                reinterpret_cast<unsigned char*>(mac.data()), &size);
  ANTDT_CHECK(made != nullptr && size == mac.size(), "HMAC-SHA-256 of {} bytes failed",
              text.size());
  return mac;
}

Secret Secret::derive(std::string_view text) const {
  Secret derived;
  Mac made = mac(text);
  std::ranges::copy(made, derived.bytes_.begin());
  OPENSSL_cleanse(made.data(), made.size());
  return derived;
}

bool same(const Mac& a, const Mac& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

Result<Nonce> random_nonce() {
  Nonce nonce{};
  ANTDT_RETURN_IF_ERROR(fill_with_random(nonce));
  return nonce;
}

Transcript& Transcript::operator<<(std::uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) text_ += static_cast<char>(number >> shift);
  return *this;
}

Transcript& Transcript::operator<<(std::string_view text) {
  *this << static_cast<std::uint64_t>(text.size());
  text_ += text;
  return *this;
}

Transcript& Transcript::operator<<(const Nonce& nonce) {
  return *this << std::string_view(reinterpret_cast<const char*>(nonce.data()), nonce.size());
}

}  // namespace antdt::crypto
