#include "core/utf8.h"

namespace antdt {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// The size of the valid character at the beginning of `text`; 0: there is none.
std::size_t size_of_character(std::string_view text) {
  const unsigned char first = byte_at(text, 0);
  const std::size_t size = first < 0x80    ? 1
                           : first < 0xc2  ? 0
                           : first < 0xe0  ? 2
                           : first < 0xf0  ? 3
                           : first <= 0xf4 ? 4
                                           : 0;
  if (size == 0 || size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte_at(text, i) & 0xc0) != 0x80) return 0;
  }
  if (size < 3) return size;
  // Longer than necessary, a surrogate, beyond the last character.
  const unsigned char second = byte_at(text, 1);
  const bool is_wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
  return is_wrong ? 0 : size;
}

}  // namespace

std::string valid_utf8(std::string_view text, std::size_t most) {
  std::string valid;
  while (!text.empty()) {
    const std::size_t size = size_of_character(text);
    const bool is_control = byte_at(text, 0) < 0x20 || byte_at(text, 0) == 0x7f;
    const std::string_view next = size == 0 ? "?" : is_control ? " " : text.substr(0, size);
    if (valid.size() + next.size() > most) break;
    valid += next;
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return valid;
}

}  // namespace antdt
