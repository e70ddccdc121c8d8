// Converts structs to msgpack maps and back.
//
// A message is a struct with
//     static constexpr std::string_view kKind = "fetch";
//     template <class Self, class V> static void fields(Self& m, V& v) {
//       v("seq", m.seq); ...
//     }
// encode() writes a map with one entry for each field. decode() reads a map in any order, ignores
// unknown keys (a newer peer sent them) and leaves a missing field at its default (an older peer
// did not send it). A value of the wrong type, and bytes that are not one msgpack map, are errors
// and nothing worse: decode() allocates no more than a small multiple of the input's size.
//
// msgpack-c reads and writes the bytes; only codec.cc and msgpack_writer.cc include its headers.
//
// A message that is sent all the time declares kLeavesOutZeros: then a number that is 0, and an
// empty vector or optional, is not written. Such a field's default is 0 or empty, for ever.
//
// Field types: bool, integers, double, std::string, enums, Id<>, WorkerId, std::vector<T>,
// std::optional<T>, and nested structs with fields().
//
// An enum with names (core/names.h) is sent as its name. An enum that has
//     constexpr Stage last_of(Stage) { return Stage::kOver; }
// is sent as its number, whether or not it has names; this is for values that are stored in bulk,
// or were numbers before. An unknown name or number is an error, unless unknown_name() says
// otherwise.
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
#include "core/wire/msgpack_writer.h"

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

// Whether a field has the value of one that was not sent.
template <class T>
bool is_zero(const T& value) {
  if constexpr (IsId<T>::value) {
    return value.value == 0;
  } else if constexpr (IsVector<T>::value) {
    return value.empty();
  } else if constexpr (IsOptional<T>::value) {
    return !value.has_value();
  } else if constexpr (std::integral<T>) {
    return value == 0;
  } else {
    return false;
  }
}

template <bool kLeavesOutZeros>
struct FieldCounter {
  std::uint32_t count = 0;
  template <class T>
  void operator()(std::string_view, const T& value) {
    if (!kLeavesOutZeros || !is_zero(value)) ++count;
  }
};
template <bool kLeavesOutZeros>
struct FieldWriter {
  MsgpackWriter& out;
  template <class T>
  void operator()(std::string_view name, const T& value) {
    if (kLeavesOutZeros && is_zero(value)) return;
    out.string(name);
    write(out, value);
  }
};

template <class T>
void write(MsgpackWriter& out, const T& value) {
  if constexpr (HasFields<const T>) {
    constexpr bool kLeavesOutZeros = requires { T::kLeavesOutZeros; };
    FieldCounter<kLeavesOutZeros> counter;
    T::fields(value, counter);
    out.map(counter.count);
    FieldWriter<kLeavesOutZeros> writer{out};
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
//
// msgpack-c walks through the bytes (codec.cc), and gives each value to a target: the address of
// the variable that it belongs to, and the reader of that variable's type. A reader is a constant
// table of functions.

// A value without parts, or the beginning of a value with parts.
struct Token {
  enum class Type : std::uint8_t {
    kNil,
    kBoolean,
    kUnsigned,
    kNegative,
    kReal,
    kString,  // or binary, which peers in some languages send for text
    kExtension,
    kArray,
    kMap,
  };
  Type type = Type::kNil;
  bool boolean = false;
  std::uint64_t unsigned_value = 0;
  std::int64_t negative_value = 0;  // if it is below 0
  double real_value = 0;
  std::string_view text = {};  // refers into the input
};
using Type = Token::Type;

struct Reader;
struct Target {
  void* value = nullptr;
  const Reader* reader = nullptr;  // null: the value is skipped
};
struct Field {
  std::string_view name;
  std::size_t offset = 0;  // of the field in its struct
  const Reader* reader = nullptr;
};
struct Reader {
  // Stores a value without parts. Returns null, or the problem with the value.
  const char* (*take)(void* value, const Token& token) = nullptr;
  // For a struct: its fields.
  const std::vector<Field>& (*fields)() = nullptr;
  // For a vector: begin() empties it and reserves room; next() appends an element.
  void (*begin)(void* value, std::size_t room) = nullptr;
  Target (*next)(void* value) = nullptr;
  std::size_t element_bytes = 0;
  // For an optional: gives it a value, and returns the target of that value.
  Target (*inside)(void* value) = nullptr;
};

template <class T>
const Reader& reader_of();

template <class T>
Target target_of(T& value) {
  if constexpr (IsId<T>::value) {
    return target_of(value.value);
  } else {
    return {&value, &reader_of<T>()};
  }
}

template <class T>
struct FieldLister {
  T& sample;
  std::vector<Field>& list;
  template <class U>
  void operator()(std::string_view name, U& value) {
    const Target target = target_of(value);
    list.push_back({name,
                    static_cast<std::size_t>(static_cast<char*>(target.value) -
                                             reinterpret_cast<char*>(&sample)),
                    target.reader});
  }
};

template <class T>
const std::vector<Field>& fields_of() {
  static const std::vector<Field> kFields = [] {
    std::vector<Field> list;
    T sample{};
    FieldLister<T> lister{sample, list};
    T::fields(sample, lister);
    return list;
  }();
  return kFields;
}

template <class T>
const char* take_integer(T& value, const Token& token) {
  if (token.type == Type::kUnsigned && std::in_range<T>(token.unsigned_value)) {
    value = static_cast<T>(token.unsigned_value);
  } else if (token.type == Type::kNegative && std::in_range<T>(token.negative_value)) {
    value = static_cast<T>(token.negative_value);
  } else {
    return "not an integer in range";
  }
  return nullptr;
}

template <class T>
const char* take_real(T& value, const Token& token) {
  switch (token.type) {
    case Type::kReal:
      return value = static_cast<T>(token.real_value), nullptr;
    case Type::kUnsigned:
      return value = static_cast<T>(token.unsigned_value), nullptr;
    case Type::kNegative:
      return value = static_cast<T>(token.negative_value), nullptr;
    default:
      return "not a number";
  }
}

template <class T>
const char* take_enum(T& value, const Token& token) {
  if constexpr (IsNumber<T>) {
    if (token.type != Type::kUnsigned ||
        token.unsigned_value > static_cast<std::uint64_t>(last_of(T{}))) {
      return "not one of its numbers";
    }
    value = static_cast<T>(token.unsigned_value);
  } else {
    const auto named = token.type == Type::kString ? by_name<T>(token.text) : std::nullopt;
    if (!named) return "not one of its names";
    value = *named;
  }
  return nullptr;
}

template <class T>
const char* take(void* at, const Token& token) {
  T& value = *static_cast<T*>(at);
  if constexpr (HasFields<T>) {
    return "not a map";
  } else if constexpr (IsVector<T>::value) {
    return "not an array";
  } else if constexpr (IsOptional<T>::value) {
    value.reset();  // nil; any other value is stored inside
    return nullptr;
  } else if constexpr (std::is_enum_v<T>) {
    return take_enum(value, token);
  } else if constexpr (std::is_same_v<T, WorkerId>) {
    const auto id = token.type == Type::kString ? parse_worker_id(token.text) : std::nullopt;
    if (!id) return "not a worker id";
    value = *id;
    return nullptr;
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (token.type != Type::kString) return "not a string";
    value.assign(token.text);
    return nullptr;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (token.type != Type::kBoolean) return "not a boolean";
    value = token.boolean;
    return nullptr;
  } else if constexpr (std::is_floating_point_v<T>) {
    return take_real(value, token);
  } else {
    static_assert(std::is_integral_v<T>, "a type the wire does not know");
    return take_integer(value, token);
  }
}

template <class T>
constexpr Reader make_reader() {
  Reader reader;
  reader.take = take<T>;
  if constexpr (HasFields<T>) {
    reader.fields = fields_of<T>;
  } else if constexpr (IsVector<T>::value) {
    reader.begin = [](void* value, std::size_t room) {
      static_cast<T*>(value)->clear();
      static_cast<T*>(value)->reserve(room);
    };
    reader.next = [](void* value) { return target_of(static_cast<T*>(value)->emplace_back()); };
    reader.element_bytes = sizeof(typename T::value_type);
  } else if constexpr (IsOptional<T>::value) {
    reader.inside = [](void* value) { return target_of(static_cast<T*>(value)->emplace()); };
  }
  return reader;
}
template <class T>
inline constexpr Reader kReader = make_reader<T>();
template <class T>
const Reader& reader_of() {
  return kReader<T>;
}

// Reads one value, which must consist of all the bytes.
[[nodiscard]] Status read_message(std::string_view bytes, Target message);

}  // namespace detail

template <class T>
[[nodiscard]] std::string encode(const T& message) {
  MsgpackWriter out;
  detail::write(out, message);
  return out.take();
}

template <class T>
[[nodiscard]] Result<T> decode(std::string_view bytes) {
  T message{};
  ANTDT_RETURN_IF_ERROR(detail::read_message(bytes, detail::target_of(message)));
  return message;
}

}  // namespace antdt::wire
