// A secret of 256 bits, and what is derived from it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace antdt::crypto {

// The content of a proof: HMAC-SHA-256.
using Mac = std::array<std::byte, 32>;
// Used once and never again, so that each conversation is different.
using Nonce = std::array<std::byte, 32>;

// A value without a text form, so that no message can show it by accident. Its memory is
// overwritten when it is destroyed.
class Secret {
 public:
  static constexpr std::size_t kBytes = 32;

  Secret() = default;  // all zeros: known to everybody
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret();

  // From the kernel's generator. kInternal if that fails.
  [[nodiscard]] static Result<Secret> random();
  // From the bytes of a message: kCorrupt unless there are kBytes of them.
  [[nodiscard]] static Result<Secret> of(std::string_view bytes);

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  // To be sent over an authenticated link, and used for nothing else.
  [[nodiscard]] std::string for_wire() const;

  // An authentication code of `text`, which only a process that has the secret can compute.
  [[nodiscard]] Mac mac(std::string_view text) const;
  // Another secret, from which nothing can be learnt about this one, or about others derived from
  // it.
  [[nodiscard]] Secret derive(std::string_view text) const;

 private:
  std::array<std::byte, kBytes> bytes_{};
};

// The time that this takes does not depend on where the two differ.
[[nodiscard]] bool same(const Mac& a, const Mac& b);

// kInternal if the kernel's generator fails.
[[nodiscard]] Result<Nonce> random_nonce();

// A sequence of numbers and texts as bytes; no two sequences give the same bytes.
class Transcript {
 public:
  explicit Transcript(std::string_view label) { *this << label; }
  Transcript& operator<<(std::uint64_t number);
  Transcript& operator<<(std::string_view text);  // preceded by its length
  Transcript& operator<<(const Nonce& nonce);
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace antdt::crypto
