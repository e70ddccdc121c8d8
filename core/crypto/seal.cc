#include "core/crypto/seal.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "core/check.h"

namespace antdt::crypto {
namespace {

using Iv = std::array<unsigned char, 12>;

Iv iv_of(std::uint64_t number) {
  Iv iv{};
  for (std::size_t i = 0; i < sizeof(number); ++i) {
    iv[iv.size() - 1 - i] = static_cast<unsigned char>(number >> (8 * i));
  }
  return iv;
}

const unsigned char* in(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* out(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}
int size_of(std::span<const std::byte> bytes) { return static_cast<int>(bytes.size()); }

detail::Cipher cipher_with(const Secret& key, bool seals) {
  detail::Cipher cipher(EVP_CIPHER_CTX_new());
  const bool made =
      cipher != nullptr && EVP_CipherInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr,
                                             in(key.bytes()), nullptr, seals ? 1 : 0) == 1;
  ANTDT_CHECK(made, "libcrypto has no AES-256-GCM");
  return cipher;
}

// Sets the nonce, and adds the data that is authenticated and not encrypted.
bool begin(evp_cipher_ctx_st* cipher, std::uint64_t number, std::span<const std::byte> open) {
  const Iv iv = iv_of(number);
  int n = 0;
  return EVP_CipherInit_ex(cipher, nullptr, nullptr, nullptr, iv.data(), -1) == 1 &&
         (open.empty() || EVP_CipherUpdate(cipher, nullptr, &n, in(open), size_of(open)) == 1);
}

}  // namespace

void detail::FreeCipher::operator()(evp_cipher_ctx_st* cipher) const {
  EVP_CIPHER_CTX_free(cipher);  // this overwrites the key
}

Sealer::Sealer(const Secret& key) : cipher_(cipher_with(key, true)) {}

void Sealer::seal(std::span<const std::byte> open, std::span<const std::byte> plain,
                  std::span<std::byte> sealed, std::span<std::byte> seal) {
  ANTDT_CHECK(sealed.size() >= plain.size() && seal.size() == kSealBytes, "no room for a seal");
  int n = 0;
  std::array<unsigned char, kSealBytes> rest{};
  const bool whole =
      begin(cipher_.get(), next_++, open) &&
      (plain.empty() ||
       EVP_CipherUpdate(cipher_.get(), out(sealed), &n, in(plain), size_of(plain)) == 1) &&
      EVP_CipherFinal_ex(cipher_.get(), rest.data(), &n) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher_.get(), EVP_CTRL_AEAD_GET_TAG, kSealBytes, seal.data()) == 1;
  ANTDT_CHECK(whole, "libcrypto cannot encrypt {} bytes", plain.size());
}

Opener::Opener(const Secret& key) : cipher_(cipher_with(key, false)) {}

bool Opener::open(std::span<const std::byte> open, std::span<std::byte> bytes,
                  std::span<const std::byte> seal) {
  ANTDT_CHECK(seal.size() == kSealBytes, "a seal has {} bytes", kSealBytes);
  int n = 0;
  std::array<unsigned char, kSealBytes> tag{};
  std::ranges::transform(seal, tag.begin(),
                         [](std::byte b) { return static_cast<unsigned char>(b); });
  std::array<unsigned char, kSealBytes> rest{};
  return begin(cipher_.get(), next_++, open) &&
         (bytes.empty() ||
          EVP_CipherUpdate(cipher_.get(), out(bytes), &n, in(bytes), size_of(bytes)) == 1) &&
         EVP_CIPHER_CTX_ctrl(cipher_.get(), EVP_CTRL_AEAD_SET_TAG, kSealBytes, tag.data()) == 1 &&
         EVP_CipherFinal_ex(cipher_.get(), rest.data(), &n) == 1;
}

}  // namespace antdt::crypto
