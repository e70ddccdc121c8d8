#include "core/ids.h"

#include <sys/random.h>

#include <array>
#include <charconv>
#include <chrono>

#include "core/check.h"

namespace antdt {

// Every envelope has ids, so this does not parse a format string.
std::string to_string(WorkerId id) {
  std::array<char, 11> text{id.role};  // a letter and 10 digits at most
  const auto end = std::to_chars(text.data() + 1, text.data() + text.size(), id.index).ptr;
  return {text.data(), end};
}

std::optional<WorkerId> parse_worker_id(std::string_view text) {
  if (text.size() < 2 || text.size() > 11 || text[0] < 'a' || text[0] > 'z') return std::nullopt;
  if (text[1] == '0' && text.size() > 2) return std::nullopt;
  WorkerId id{text[0], 0};
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data() + 1, end, id.index);
  if (error != std::errc() || parsed != end || id.index > 0x7fffffffU) return std::nullopt;
  return id;
}

std::string make_ulid(std::uint64_t unix_ms, std::uint64_t random_high, std::uint64_t random_low) {
  static constexpr std::string_view kAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  std::string text(26, '0');
  for (int i = 9; i >= 0; --i, unix_ms >>= 5) {
    text[static_cast<std::size_t>(i)] = kAlphabet[unix_ms & 31];
  }
  for (int i = 17; i >= 10; --i, random_high >>= 5) {
    text[static_cast<std::size_t>(i)] = kAlphabet[random_high & 31];
  }
  for (int i = 25; i >= 18; --i, random_low >>= 5) {
    text[static_cast<std::size_t>(i)] = kAlphabet[random_low & 31];
  }
  return text;
}

std::string new_ulid() {
  std::array<std::uint64_t, 2> random{};
  const ssize_t got = getrandom(random.data(), sizeof(random), 0);
  ANTDT_CHECK(got == sizeof(random), "getrandom returned {}", got);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return make_ulid(static_cast<std::uint64_t>(
                       std::chrono::duration_cast<std::chrono::milliseconds>(now).count()),
                   random[0], random[1]);
}

}  // namespace antdt
