#include "core/wire/msgpack_writer.h"

#include <algorithm>
#include <bit>
#include <msgpack/pack.hpp>
#include <type_traits>

namespace antdt::wire {

// Without it the packer's calls of write() are not inlined, and each copies its one to nine bytes
// by a call of memcpy.
#define ANTDT_INLINE_WRITES [[gnu::flatten]]

namespace {

msgpack::packer<MsgpackWriter> packer(MsgpackWriter& out) { return msgpack::packer(out); }

// Copies up to 16 bytes without a call: most texts of a message are names of its fields. Two copies
// of a fixed length overlap in the middle.
void copy_short(char* to, const char* from, std::size_t size) {
  const auto both_ends = [=]<std::size_t Part>(std::integral_constant<std::size_t, Part>) {
    std::memcpy(to, from, Part);
    std::memcpy(to + size - Part, from + size - Part, Part);
  };
  if (size >= 8) return both_ends(std::integral_constant<std::size_t, 8>());
  if (size >= 4) return both_ends(std::integral_constant<std::size_t, 4>());
  if (size >= 2) return both_ends(std::integral_constant<std::size_t, 2>());
  if (size == 1) *to = *from;
}

}  // namespace

// Data that does not fit is appended, so that a chunk of a file is neither cleared first nor copied
// again for the data behind it.
[[gnu::noinline]] void MsgpackWriter::write_behind(const char* bytes, std::size_t size) {
  const std::size_t room = std::clamp<std::size_t>(size_, 256, 4096);
  bytes_.resize(size_);
  bytes_.reserve(size_ + size + room);
  bytes_.append(bytes, size);
  size_ = bytes_.size();
  bytes_.append(room, '\0');
}

void MsgpackWriter::nil() { packer(*this).pack_nil(); }
void MsgpackWriter::boolean(bool value) {
  value ? packer(*this).pack_true() : packer(*this).pack_false();
}
ANTDT_INLINE_WRITES void MsgpackWriter::unsigned_integer(std::uint64_t value) {
  packer(*this).pack_uint64(value);
}
ANTDT_INLINE_WRITES void MsgpackWriter::signed_integer(std::int64_t value) {
  packer(*this).pack_int64(value);
}
ANTDT_INLINE_WRITES void MsgpackWriter::array(std::uint32_t count) {
  packer(*this).pack_array(count);
}
ANTDT_INLINE_WRITES void MsgpackWriter::map(std::uint32_t count) { packer(*this).pack_map(count); }

// Always eight bytes: the packer would write a whole number as an integer.
void MsgpackWriter::real(double value) {
  char bytes[9] = {static_cast<char>(0xcb)};
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int i = 0; i < 8; ++i) bytes[1 + i] = static_cast<char>(bits >> (56 - 8 * i));
  write(bytes, sizeof(bytes));
}

ANTDT_INLINE_WRITES void MsgpackWriter::string(std::string_view value) {
  const auto size = static_cast<std::uint32_t>(value.size());
  packer(*this).pack_str(size);
  if (size > 16 || bytes_.size() - size_ < size) return write(value.data(), size);
  copy_short(bytes_.data() + size_, value.data(), size);
  size_ += size;
}

}  // namespace antdt::wire
