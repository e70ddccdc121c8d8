#include "core/wire/codec.h"

namespace antdt::wire::detail {

bool Decoder::next_key(std::uint32_t& entries_left, std::string_view& key) {
  Token token;
  while (entries_left > 0) {
    --entries_left;
    if (!next(token)) return false;
    if (token.type == Type::kString) {
      key = token.text;
      return true;
    }
    if (!in_.skip_elements(token)) return cut_short();
    if (!skip_value()) return false;
  }
  return false;
}

bool Decoder::cut_short() {
  if (problem_.empty()) problem_ = "it is cut short, claims more than it holds, or is no msgpack";
  return false;
}

bool Decoder::wrong(std::string_view name, std::string_view what) {
  if (problem_.empty()) problem_ = fmt::format("field '{}' is {}", name, what);
  return false;
}

}  // namespace antdt::wire::detail
