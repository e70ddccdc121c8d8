// Converts the structs of core/report to JSON and back. For .cc files only: it includes
// nlohmann/json.
//
// Reading is strict: a required field that is missing or has another type is an error that names it
// ("workers[2].attempt is missing"). Unknown fields are ignored, because a newer version wrote
// them. A number that is not finite, such as the loss of a model that has diverged, is null.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/result.h"

namespace antdt::report {

using Json = nlohmann::json;

// Text from peers may be any bytes, and may begin inside a character; invalid bytes are replaced.
[[nodiscard]] inline std::string to_text(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

namespace detail {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};

// ------------------------------------------------------------------- writing

template <class T>
Json value_of(const T& value);

struct Writer {
  Json& out;
  template <class T>
  void operator()(const char* name, const T& value) {
    out[name] = value_of(value);
  }
  template <class T>
  void if_any(const char* name, const std::optional<T>& value) {
    if (value) out[name] = value_of(*value);
  }
  template <class T>
  void if_any(const char* name, const std::vector<T>& value) {
    if (!value.empty()) out[name] = value_of(value);
  }
  template <class T>
  void if_any(const char* name, const std::map<std::string, T>& value) {
    if (!value.empty()) out[name] = value_of(value);
  }
  void if_any(const char* name, std::uint64_t value) {
    if (value > 0) out[name] = value;
  }
  template <class T>
  void later(const char* name, const T& value) {
    (*this)(name, value);
  }
};

template <class T>
Json value_of(const T& value) {
  if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string>) {
    return value;
  } else if constexpr (IsOptional<T>::value) {
    return value ? value_of(*value) : Json(nullptr);
  } else if constexpr (IsVector<T>::value) {
    Json out = Json::array();
    for (const auto& element : value) out.push_back(value_of(element));
    return out;
  } else if constexpr (IsMap<T>::value) {
    Json out = Json::object();
    for (const auto& [name, element] : value) out[name] = value_of(element);
    return out;
  } else {
    Json out = Json::object();
    Writer writer{out};
    T::fields(value, writer);
    return out;
  }
}

// ------------------------------------------------------------------- reading

// `where`: the path of what is read, for errors.
template <class T>
antdt::Status read(const Json& from, const std::string& where, T& into);

struct Reader {
  const Json& object;
  const std::string& where;
  antdt::Status status = {};  // the first error

  template <class T>
  void operator()(const char* name, T& into) {
    if (!status) return;
    const auto it = object.find(name);
    if (it == object.end()) {
      status = fail(ErrorKind::kCorrupt, "{} is missing", path(name));
    } else {
      status = read(*it, path(name), into);
    }
  }
  template <class T>
  void if_any(const char* name, T& into) {
    later(name, into);
  }
  template <class T>
  void later(const char* name, T& into) {
    if (status && object.contains(name)) (*this)(name, into);
  }

 private:
  [[nodiscard]] std::string path(const char* name) const {
    return where.empty() ? name : fmt::format("{}.{}", where, name);
  }
};

inline antdt::Status wrong_type(const std::string& where, std::string_view wanted) {
  return fail(ErrorKind::kCorrupt, "{} is no {}", where.empty() ? "it" : where, wanted);
}

template <class T>
antdt::Status read_number(const Json& from, const std::string& where, T& into) {
  if constexpr (std::same_as<T, bool>) {
    if (!from.is_boolean()) return wrong_type(where, "truth value");
  } else if constexpr (std::floating_point<T>) {
    if (from.is_null()) {  // JSON has no number for what is not finite
      into = std::numeric_limits<T>::quiet_NaN();
      return {};
    }
    if (!from.is_number()) return wrong_type(where, "number");
  } else if constexpr (std::unsigned_integral<T>) {
    if (!from.is_number_unsigned()) return wrong_type(where, "count");
  } else {
    if (!from.is_number_integer()) return wrong_type(where, "whole number");
  }
  into = from.get<T>();
  return {};
}

template <class T>
antdt::Status read_vector(const Json& from, const std::string& where, std::vector<T>& into) {
  if (!from.is_array()) return wrong_type(where, "list");
  for (std::size_t i = 0; i < from.size(); ++i) {
    ANTDT_RETURN_IF_ERROR(read(from[i], fmt::format("{}[{}]", where, i), into.emplace_back()));
  }
  return {};
}

template <class T>
antdt::Status read(const Json& from, const std::string& where, T& into) {
  if constexpr (std::is_arithmetic_v<T>) {
    return read_number(from, where, into);
  } else if constexpr (std::same_as<T, std::string>) {
    if (!from.is_string()) return wrong_type(where, "text");
    into = from.get<std::string>();
    return {};
  } else if constexpr (IsOptional<T>::value) {
    if (from.is_null()) return {};
    return read(from, where, into.emplace());
  } else if constexpr (IsVector<T>::value) {
    return read_vector(from, where, into);
  } else if constexpr (IsMap<T>::value) {
    if (!from.is_object()) return wrong_type(where, "object");
    for (const auto& [name, element] : from.items()) {
      ANTDT_RETURN_IF_ERROR(read(element, fmt::format("{}.{}", where, name), into[name]));
    }
    return {};
  } else {
    if (!from.is_object()) return wrong_type(where, "object");
    Reader reader{from, where};
    T::fields(into, reader);
    return reader.status;
  }
}

}  // namespace detail

template <class T>
[[nodiscard]] Json json_of(const T& value) {
  return detail::value_of(value);
}

template <class T>
[[nodiscard]] Result<T> from_json(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return fail(ErrorKind::kCorrupt, "it is no JSON");
  T value;
  ANTDT_RETURN_IF_ERROR(detail::read(json, "", value));
  return value;
}

}  // namespace antdt::report
