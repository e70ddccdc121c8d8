// Writing and reading of msgpack (https://github.com/msgpack/msgpack/blob/master/spec.md),
// as much of it as messages need.
//
// The reader walks the bytes once and builds nothing: no tree, no recursion
// over what the bytes claim, no allocation. A header that claims more elements
// than there are bytes left is refused when it is read, so whoever makes room
// for `count` elements makes room in proportion to what has really arrived.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace antdt::wire {

class MsgpackWriter {
 public:
  MsgpackWriter() { bytes_.reserve(128); }
  void nil() { put(0xc0); }
  void boolean(bool value) { put(value ? 0xc3 : 0xc2); }
  void unsigned_integer(std::uint64_t value);
  void signed_integer(std::int64_t value);
  void real(double value);
  void string(std::string_view value);
  void array(std::uint32_t count);  // `count` values follow
  void map(std::uint32_t count);    // `count` times a key and a value follow
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  void put(std::uint8_t byte) { bytes_.push_back(static_cast<char>(byte)); }
  template <class Unsigned>
  void put_big_endian(std::uint8_t head, Unsigned value);
  std::string bytes_;
};

struct MsgpackToken {
  enum class Type {
    kNil,
    kBoolean,
    kUnsigned,
    kNegative,
    kReal,
    kString,
    kArray,
    kMap,
    kExtension
  };
  Type type = Type::kNil;
  bool boolean = false;
  std::uint32_t count = 0;  // elements of an array, entries of a map
  std::uint64_t unsigned_value = 0;
  std::int64_t negative_value = 0;  // below 0
  double real_value = 0;
  std::string_view text;  // string, binary or extension: points into the input
};

class MsgpackReader {
 public:
  explicit MsgpackReader(std::string_view bytes) : rest_(bytes) {}

  // The next value, of an array or a map only its header. False when the bytes
  // end too early or cannot be msgpack.
  [[nodiscard]] bool next(MsgpackToken& token);
  // What belongs to a token read last: the elements of an array or a map.
  [[nodiscard]] bool skip_elements(const MsgpackToken& token);
  // A whole value.
  [[nodiscard]] bool skip();
  [[nodiscard]] std::size_t left() const { return rest_.size(); }

 private:
  template <class Unsigned>
  [[nodiscard]] bool take(Unsigned& value);
  [[nodiscard]] bool take_text(MsgpackToken& token, MsgpackToken::Type type, std::uint64_t size);
  [[nodiscard]] bool take_count(MsgpackToken& token, MsgpackToken::Type type, std::uint64_t count);
  [[nodiscard]] bool next_sized(std::uint8_t head, MsgpackToken& token);
  std::string_view rest_;
};

}  // namespace antdt::wire
