#include "launcher/top/keys.h"

#include <cctype>
#include <optional>
#include <string_view>

namespace antdt::launcher::top {
namespace {

// "[A" or "OA" after an escape; `used`: how many bytes of it.
std::optional<Key> sequence(std::string_view rest, std::size_t& used) {
  if (rest.empty() || (rest[0] != '[' && rest[0] != 'O')) {
    used = 0;
    return Key::kEscape;
  }
  used = 1;
  while (used < rest.size() &&
         (std::isdigit(static_cast<unsigned char>(rest[used])) != 0 || rest[used] == ';')) {
    ++used;
  }
  if (used < rest.size()) ++used;
  const std::string_view what = rest.substr(1, used - 1);
  if (what == "A") return Key::kUp;
  if (what == "B") return Key::kDown;
  if (what == "5~") return Key::kPageUp;
  if (what == "6~") return Key::kPageDown;
  return std::nullopt;
}

}  // namespace

std::vector<Pressed> keys_of(const std::string& bytes) {
  std::vector<Pressed> keys;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const auto c = static_cast<unsigned char>(bytes[at]);
    if (c == 0x1b) {
      std::size_t used = 0;
      if (const auto key = sequence(std::string_view(bytes).substr(at + 1), used)) {
        keys.push_back({*key});
      }
      at += used;
    } else if (c == 0x03 || c == 0x04) {  // Ctrl-C, Ctrl-D
      keys.push_back({Key::kInterrupt});
    } else if (c == '\r' || c == '\n') {
      keys.push_back({Key::kEnter});
    } else if (std::isalpha(c) != 0) {
      keys.push_back({Key::kLetter, static_cast<char>(std::tolower(c))});
    }
  }
  return keys;
}

}  // namespace antdt::launcher::top
