// Reads integers from JSON.
//
// nlohmann::json converts any number to an integer, which is undefined if it does not fit. These
// functions are for input from files and peers.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace antdt {

// Throws json::exception unless `value` is a whole number that a T can hold.
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

// The same for object[key]; `otherwise` if there is no such key.
template <class T, class Json>
[[nodiscard]] T json_integer(const Json& object, const char* key, T otherwise) {
  const auto found = object.find(key);
  return found == object.end() ? otherwise : json_integer<T>(*found);
}

}  // namespace antdt
