// Structs to msgpack maps and back.
//
// A message is a struct with
//     static constexpr std::string_view kKind = "fetch";
//     template <class Self, class V> static void fields(Self& m, V& v) {
//       v("seq", m.seq); ...
//     }
// encode() writes a map with one entry a field. decode() reads a map in any
// order, ignores keys it does not know (a newer peer sent them) and leaves a
// missing field at its default (an older peer did not). A value of the wrong
// type, or bytes that are not one msgpack map, are an error and never more:
// decode() allocates no more than a small multiple of the input's size.
//
// Field types: bool, integers, double, std::string, enums, Id<>, WorkerId,
// std::vector<T>, std::optional<T>, and nested structs with fields().
//
// An enum with names (core/names.h) travels as its name. One that has
//     constexpr Stage last_of(Stage) { return Stage::kOver; }
// travels as its number, names or not: for what is kept in bulk, or was a number before. A name
// or a number that no value has is an error, but for what unknown_name() says.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/names.h"
#include "core/result.h"
#include "core/wire/msgpack.h"

namespace antdt::wire {

namespace detail {

struct AnyVisitor {
  template <class T>
  void operator()(std::string_view, T&) {}
};
template <class T>
concept HasFields = requires(T& t, AnyVisitor& v) {
  T::fields(t, v);
};
template <class T>
struct IsId : std::false_type {};
template <class Tag, class Rep>
struct IsId<Id<Tag, Rep>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
concept IsNumber = std::is_enum_v<T> && requires(T value) {
  last_of(value);
};

// ------------------------------------------------------------------- writing

template <class T>
void write(MsgpackWriter& out, const T& value);

struct FieldCounter {
  std::uint32_t count = 0;
  template <class T>
  void operator()(std::string_view, const T&) {
    ++count;
  }
};
struct FieldWriter {
  MsgpackWriter& out;
  template <class T>
  void operator()(std::string_view name, const T& value) {
    out.string(name);
    write(out, value);
  }
};

template <class T>
void write(MsgpackWriter& out, const T& value) {
  if constexpr (HasFields<const T>) {
    FieldCounter counter;
    T::fields(value, counter);
    out.map(counter.count);
    FieldWriter writer{out};
    T::fields(value, writer);
  } else if constexpr (IsId<T>::value) {
    write(out, value.value);
  } else if constexpr (std::is_same_v<T, WorkerId>) {
    out.string(to_string(value));
  } else if constexpr (IsNumber<T>) {
    out.unsigned_integer(static_cast<std::uint64_t>(value));
  } else if constexpr (Named<T>) {
    out.string(name_of(value));
  } else if constexpr (std::is_same_v<T, std::string>) {
    out.string(value);
  } else if constexpr (IsVector<T>::value) {
    out.array(static_cast<std::uint32_t>(value.size()));
    for (const auto& item : value) write(out, item);
  } else if constexpr (IsOptional<T>::value) {
    value ? write(out, *value) : out.nil();
  } else if constexpr (std::is_same_v<T, bool>) {
    out.boolean(value);
  } else if constexpr (std::unsigned_integral<T>) {
    out.unsigned_integer(value);
  } else if constexpr (std::signed_integral<T>) {
    out.signed_integer(value);
  } else {
    static_assert(std::is_floating_point_v<T>, "a type the wire does not know");
    out.real(value);
  }
}

// ------------------------------------------------------------------- reading

using Token = MsgpackToken;
using Type = MsgpackToken::Type;

// Where decoding stands. After the first problem nothing more is read.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : in_(bytes) {}

  template <class T>
  [[nodiscard]] bool read(T& value, std::string_view name) {
    Token token;
    return next(token) && read_as(token, value, name);
  }
  // The key that comes next, skipping entries whose key is no string; nothing
  // at the end of the map or after a problem.
  [[nodiscard]] bool next_key(std::uint32_t& entries_left, std::string_view& key);
  [[nodiscard]] bool skip_value() { return in_.skip() || cut_short(); }
  [[nodiscard]] std::size_t left() const { return in_.left(); }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  template <class T>
  bool read_as(const Token& token, T& value, std::string_view name);
  template <class T>
  bool read_fields(const Token& token, T& value, std::string_view name);
  template <class T>
  bool read_integer(const Token& token, T& value, std::string_view name);
  template <class T>
  bool read_enum(const Token& token, T& value, std::string_view name);
  bool next(Token& token) { return in_.next(token) || cut_short(); }
  bool cut_short();
  bool wrong(std::string_view name, std::string_view what);

  MsgpackReader in_;
  std::string problem_;
};

// Offered every field in turn, reads those that are next in the bytes. A peer
// that writes in our order is read in one pass.
struct FieldReader {
  Decoder& in;
  std::uint32_t entries_left;
  std::string_view key = {};
  bool has_key = false;
  bool read_some = false;

  void advance() { has_key = in.next_key(entries_left, key); }
  template <class T>
  void operator()(std::string_view name, T& value) {
    if (!has_key || key != name) return;
    read_some = true;
    has_key = false;
    if (in.read(value, name)) advance();
  }
};

template <class T>
bool Decoder::read_fields(const Token& token, T& value, std::string_view name) {
  if (token.type != Type::kMap) return wrong(name, "not a map");
  FieldReader reader{*this, token.count};
  for (reader.advance(); reader.has_key;) {
    reader.read_some = false;
    T::fields(value, reader);
    if (reader.read_some) continue;
    // No field has this name: a newer peer knows more.
    if (!skip_value()) return false;
    reader.advance();
  }
  return problem_.empty();
}

template <class T>
bool Decoder::read_integer(const Token& token, T& value, std::string_view name) {
  if (token.type == Type::kUnsigned && std::in_range<T>(token.unsigned_value)) {
    value = static_cast<T>(token.unsigned_value);
  } else if (token.type == Type::kNegative && std::in_range<T>(token.negative_value)) {
    value = static_cast<T>(token.negative_value);
  } else {
    return wrong(name, "not an integer in range");
  }
  return true;
}

template <class T>
bool Decoder::read_enum(const Token& token, T& value, std::string_view name) {
  if constexpr (IsNumber<T>) {
    if (token.type != Type::kUnsigned ||
        token.unsigned_value > static_cast<std::uint64_t>(last_of(T{}))) {
      return wrong(name, "not one of its numbers");
    }
    value = static_cast<T>(token.unsigned_value);
  } else {
    const auto named = token.type == Type::kString ? by_name<T>(token.text) : std::nullopt;
    if (!named) return wrong(name, "not one of its names");
    value = *named;
  }
  return true;
}

template <class T>
bool Decoder::read_as(const Token& token, T& value, std::string_view name) {
  if constexpr (HasFields<T>) {
    return read_fields(token, value, name);
  } else if constexpr (IsId<T>::value) {
    return read_as(token, value.value, name);
  } else if constexpr (std::is_same_v<T, WorkerId>) {
    const auto id = token.type == Type::kString ? parse_worker_id(token.text) : std::nullopt;
    if (!id) return wrong(name, "not a worker id");
    value = *id;
  } else if constexpr (std::is_enum_v<T>) {
    return read_enum(token, value, name);
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (token.type != Type::kString) return wrong(name, "not a string");
    value.assign(token.text);
  } else if constexpr (IsVector<T>::value) {
    if (token.type != Type::kArray) return wrong(name, "not an array");
    value.clear();
    value.reserve(token.count);
    for (std::uint32_t i = 0; i < token.count; ++i) {
      if (!read(value.emplace_back(), name)) return false;
    }
  } else if constexpr (IsOptional<T>::value) {
    value.reset();
    if (token.type != Type::kNil) return read_as(token, value.emplace(), name);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (token.type != Type::kBoolean) return wrong(name, "not a boolean");
    value = token.boolean;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (token.type == Type::kReal) {
      value = static_cast<T>(token.real_value);
    } else if (token.type == Type::kUnsigned) {
      value = static_cast<T>(token.unsigned_value);
    } else if (token.type == Type::kNegative) {
      value = static_cast<T>(token.negative_value);
    } else {
      return wrong(name, "not a number");
    }
  } else {
    static_assert(std::is_integral_v<T>, "a type the wire does not know");
    return read_integer(token, value, name);
  }
  return true;
}

}  // namespace detail

template <class T>
[[nodiscard]] std::string encode(const T& message) {
  MsgpackWriter out;
  detail::write(out, message);
  return out.take();
}

template <class T>
[[nodiscard]] Result<T> decode(std::string_view bytes) {
  detail::Decoder in(bytes);
  T message{};
  if (!in.read(message, "message")) {
    return fail(ErrorKind::kCorrupt, "message of {} bytes cannot be read: {}", bytes.size(),
                in.problem());
  }
  if (in.left() > 0) {
    return fail(ErrorKind::kCorrupt, "message of {} bytes cannot be read: {} bytes after its end",
                bytes.size(), in.left());
  }
  return message;
}

}  // namespace antdt::wire
