// 256 bits that only those know who were told, and what is made of them.
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
// Said once and never again: makes each conversation another one.
using Nonce = std::array<std::byte, 32>;

// A value that has no text form, so that no message can show it by accident. Its memory is
// overwritten when it is destroyed.
class Secret {
 public:
  static constexpr std::size_t kBytes = 32;

  Secret() = default;  // zeros: known to everybody
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret();

  // From the kernel's generator. kInternal if it gives nothing.
  [[nodiscard]] static Result<Secret> random();
  // As it came in a message: kCorrupt unless it is kBytes long.
  [[nodiscard]] static Result<Secret> of(std::string_view bytes);

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  // For a message over an authenticated link, and nothing else.
  [[nodiscard]] std::string for_wire() const;

  // What only who has the secret can say about `text`.
  [[nodiscard]] Mac mac(std::string_view text) const;
  // Another secret: who has it learns nothing about this one, or about others made of it.
  [[nodiscard]] Secret derive(std::string_view text) const;

 private:
  std::array<std::byte, kBytes> bytes_{};
};

// In a time that does not depend on where they differ.
[[nodiscard]] bool same(const Mac& a, const Mac& b);

// kInternal if the kernel gives nothing.
[[nodiscard]] Result<Nonce> random_nonce();

// Numbers and texts one after another, so that no two sequences give the same bytes.
class Transcript {
 public:
  explicit Transcript(std::string_view label) { *this << label; }
  Transcript& operator<<(std::uint64_t number);
  Transcript& operator<<(std::string_view text);  // with its length before it
  Transcript& operator<<(const Nonce& nonce);
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace antdt::crypto
