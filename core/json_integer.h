// Integers out of JSON.
//
// nlohmann::json makes an integer of any number, which is undefined where it
// does not fit. What comes from a file or a peer is read with these.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace antdt {

// Throws json::exception where `value` is no whole number that a T can hold.
template <class T, class Json>
[[nodiscard]] T json_integer(const Json& value) {
  const bool fits =
      value.is_number_unsigned()
          ? std::in_range<T>(value.template get<std::uint64_t>())
          : value.is_number_integer() && std::in_range<T>(value.template get<std::int64_t>());
  if (!fits) {
    throw nlohmann::json::other_error::create(500, value.dump() + " is no such whole number",
                                              nullptr);
  }
  return static_cast<T>(value.template get<T>());
}

// The same of object[key]; `otherwise` where there is no such key.
template <class T, class Json>
[[nodiscard]] T json_integer(const Json& object, const char* key, T otherwise) {
  const auto found = object.find(key);
  return found == object.end() ? otherwise : json_integer<T>(*found);
}

}  // namespace antdt
