// Enums whose values have names: on the wire, in job.toml, in JSON, in messages to people.
//
// An enum declares its names once, beside itself, in the order of its values from 0 on:
//
//     enum class Split : std::uint8_t { kTrain, kEval };
//     constexpr auto names_of(Split) { return names("train", "eval"); }
//
// name_of(), by_name(), fmt and the codecs of messages and of JSON are based on that. If a newer
// peer may know further names, the enum also says which of its values stands for an unknown name:
//
//     constexpr Answer unknown_name(Answer) { return Answer::kOther; }
//
// Otherwise an unknown name is an error for the reader.
#pragma once

#include <fmt/core.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

namespace antdt {

template <class... Names>
[[nodiscard]] constexpr auto names(Names... all) {
  return std::array<std::string_view, sizeof...(Names)>{all...};
}

template <class E>
concept Named = std::is_enum_v<E> && requires(E value) {
  names_of(value);
};

template <Named E>
[[nodiscard]] constexpr std::string_view name_of(E value) {
  constexpr auto kNames = names_of(E{});
  const auto index = static_cast<std::size_t>(value);
  return index < kNames.size() ? kNames[index] : std::string_view("?");
}

// The value with that name, or the one for unknown names; empty if there is neither.
template <Named E>
[[nodiscard]] constexpr std::optional<E> by_name(std::string_view name) {
  constexpr auto kNames = names_of(E{});
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<E>(i);
  }
  if constexpr (requires { unknown_name(E{}); }) return unknown_name(E{});
  return std::nullopt;
}

}  // namespace antdt

template <antdt::Named E>
struct fmt::formatter<E> : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(E value, Context& context) const {
    const std::string_view name = antdt::name_of(value);
    // The base's format() is not const in every release of fmt.
    auto base = static_cast<const fmt::formatter<fmt::string_view>&>(*this);
    return base.format(fmt::string_view(name.data(), name.size()), context);
  }
};
