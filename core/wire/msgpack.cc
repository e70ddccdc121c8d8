#include "core/wire/msgpack.h"

#include <bit>
#include <limits>

namespace antdt::wire {

namespace {

using Type = MsgpackToken::Type;
constexpr std::size_t kLargeString = 4096;

void set_signed(MsgpackToken& token, std::int64_t value) {
  token.type = value < 0 ? Type::kNegative : Type::kUnsigned;
  token.negative_value = value;
  token.unsigned_value = static_cast<std::uint64_t>(value);
}

void set_unsigned(MsgpackToken& token, std::uint64_t value) {
  token.type = Type::kUnsigned;
  token.unsigned_value = value;
}

void set_real(MsgpackToken& token, double value) {
  token.type = Type::kReal;
  token.real_value = value;
}

}  // namespace

// ------------------------------------------------------------------- writing

template <class Unsigned>
void MsgpackWriter::put_big_endian(std::uint8_t head, Unsigned value) {
  char out[1 + sizeof(Unsigned)];
  out[0] = static_cast<char>(head);
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) {
    out[1 + i] = static_cast<char>(value >> (8 * (sizeof(Unsigned) - 1 - i)));
  }
  bytes_.append(out, sizeof(out));
}

void MsgpackWriter::unsigned_integer(std::uint64_t value) {
  if (value < 0x80) return put(static_cast<std::uint8_t>(value));
  if (value <= 0xff) return put_big_endian(0xcc, static_cast<std::uint8_t>(value));
  if (value <= 0xffff) return put_big_endian(0xcd, static_cast<std::uint16_t>(value));
  if (value <= 0xffffffff) return put_big_endian(0xce, static_cast<std::uint32_t>(value));
  put_big_endian(0xcf, value);
}

void MsgpackWriter::signed_integer(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= 0) return unsigned_integer(bits);
  if (value >= -32) return put(static_cast<std::uint8_t>(bits));
  if (value >= std::numeric_limits<std::int8_t>::min()) {
    return put_big_endian(0xd0, static_cast<std::uint8_t>(bits));
  }
  if (value >= std::numeric_limits<std::int16_t>::min()) {
    return put_big_endian(0xd1, static_cast<std::uint16_t>(bits));
  }
  if (value >= std::numeric_limits<std::int32_t>::min()) {
    return put_big_endian(0xd2, static_cast<std::uint32_t>(bits));
  }
  put_big_endian(0xd3, bits);
}

void MsgpackWriter::real(double value) {
  put_big_endian(0xcb, std::bit_cast<std::uint64_t>(value));
}

void MsgpackWriter::string(std::string_view value) {
  const std::size_t size = value.size();
  // A chunk of a file is not copied again for what comes behind it.
  if (size > kLargeString) bytes_.reserve(bytes_.size() + size + kLargeString);
  if (size < 32) {
    put(static_cast<std::uint8_t>(0xa0 | size));
  } else if (size <= 0xff) {
    put_big_endian(0xd9, static_cast<std::uint8_t>(size));
  } else if (size <= 0xffff) {
    put_big_endian(0xda, static_cast<std::uint16_t>(size));
  } else {
    put_big_endian(0xdb, static_cast<std::uint32_t>(size));
  }
  bytes_.append(value);
}

void MsgpackWriter::array(std::uint32_t count) {
  if (count < 16) return put(static_cast<std::uint8_t>(0x90 | count));
  if (count <= 0xffff) return put_big_endian(0xdc, static_cast<std::uint16_t>(count));
  put_big_endian(0xdd, count);
}

void MsgpackWriter::map(std::uint32_t count) {
  if (count < 16) return put(static_cast<std::uint8_t>(0x80 | count));
  if (count <= 0xffff) return put_big_endian(0xde, static_cast<std::uint16_t>(count));
  put_big_endian(0xdf, count);
}

// ------------------------------------------------------------------- reading

template <class Unsigned>
bool MsgpackReader::take(Unsigned& value) {
  if (rest_.size() < sizeof(Unsigned)) return false;
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) {
    bits = (bits << 8) | static_cast<unsigned char>(rest_[i]);
  }
  value = static_cast<Unsigned>(bits);
  rest_.remove_prefix(sizeof(Unsigned));
  return true;
}

bool MsgpackReader::take_text(MsgpackToken& token, Type type, std::uint64_t size) {
  if (size > rest_.size()) return false;
  token.type = type;
  token.text = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return true;
}

bool MsgpackReader::take_count(MsgpackToken& token, Type type, std::uint64_t count) {
  // Every element is at least one byte.
  if ((type == Type::kMap ? 2 * count : count) > rest_.size()) return false;
  token.type = type;
  token.count = static_cast<std::uint32_t>(count);
  return true;
}

bool MsgpackReader::next(MsgpackToken& token) {
  std::uint8_t head = 0;
  if (!take(head)) return false;
  if (head < 0x80) return set_unsigned(token, head), true;
  if (head < 0x90) return take_count(token, Type::kMap, head & 0x0f);
  if (head < 0xa0) return take_count(token, Type::kArray, head & 0x0f);
  if (head < 0xc0) return take_text(token, Type::kString, head & 0x1f);
  if (head >= 0xe0) return set_signed(token, static_cast<std::int8_t>(head)), true;
  return next_sized(head, token);
}

// Values whose head is followed by a number: the value itself, or a length.
bool MsgpackReader::next_sized(std::uint8_t head, MsgpackToken& token) {
  std::uint8_t n8 = 0;
  std::uint16_t n16 = 0;
  std::uint32_t n32 = 0;
  std::uint64_t n64 = 0;
  switch (head) {
    case 0xc0:
      return token.type = Type::kNil, true;
    case 0xc2:
    case 0xc3:
      return token.type = Type::kBoolean, token.boolean = head == 0xc3, true;
    case 0xc4:  // binary: a peer in a language that tells it from text
    case 0xd9:
      return take(n8) && take_text(token, Type::kString, n8);
    case 0xc5:
    case 0xda:
      return take(n16) && take_text(token, Type::kString, n16);
    case 0xc6:
    case 0xdb:
      return take(n32) && take_text(token, Type::kString, n32);
    case 0xc7:
      return take(n8) && take_text(token, Type::kExtension, n8 + 1ULL);
    case 0xc8:
      return take(n16) && take_text(token, Type::kExtension, n16 + 1ULL);
    case 0xc9:
      return take(n32) && take_text(token, Type::kExtension, n32 + 1ULL);
    case 0xca:
      return take(n32) && (set_real(token, std::bit_cast<float>(n32)), true);
    case 0xcb:
      return take(n64) && (set_real(token, std::bit_cast<double>(n64)), true);
    case 0xcc:
      return take(n8) && (set_unsigned(token, n8), true);
    case 0xcd:
      return take(n16) && (set_unsigned(token, n16), true);
    case 0xce:
      return take(n32) && (set_unsigned(token, n32), true);
    case 0xcf:
      return take(n64) && (set_unsigned(token, n64), true);
    case 0xd0:
      return take(n8) && (set_signed(token, static_cast<std::int8_t>(n8)), true);
    case 0xd1:
      return take(n16) && (set_signed(token, static_cast<std::int16_t>(n16)), true);
    case 0xd2:
      return take(n32) && (set_signed(token, static_cast<std::int32_t>(n32)), true);
    case 0xd3:
      return take(n64) && (set_signed(token, static_cast<std::int64_t>(n64)), true);
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      return take_text(token, Type::kExtension, (1ULL << (head - 0xd4)) + 1);
    case 0xdc:
      return take(n16) && take_count(token, Type::kArray, n16);
    case 0xdd:
      return take(n32) && take_count(token, Type::kArray, n32);
    case 0xde:
      return take(n16) && take_count(token, Type::kMap, n16);
    case 0xdf:
      return take(n32) && take_count(token, Type::kMap, n32);
    default:
      return false;  // 0xc1 is never used
  }
}

bool MsgpackReader::skip_elements(const MsgpackToken& token) {
  std::uint64_t values = 0;
  if (token.type == Type::kArray) values = token.count;
  if (token.type == Type::kMap) values = 2ULL * token.count;
  MsgpackToken inner;
  for (; values > 0; --values) {
    if (!next(inner)) return false;
    if (inner.type == Type::kArray) values += inner.count;
    if (inner.type == Type::kMap) values += 2ULL * inner.count;
  }
  return true;
}

bool MsgpackReader::skip() {
  MsgpackToken token;
  return next(token) && skip_elements(token);
}

}  // namespace antdt::wire
