#include "core/wire/msgpack_writer.h"

#include <algorithm>
#include <bit>
#include <msgpack/pack.hpp>

namespace antdt::wire {

namespace {

msgpack::packer<MsgpackWriter> packer(MsgpackWriter& out) { return msgpack::packer(out); }

}  // namespace

// Data that does not fit is appended, so that a chunk of a file is neither cleared first nor copied
// again for the data behind it.
void MsgpackWriter::write_behind(const char* bytes, std::size_t size) {
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
void MsgpackWriter::unsigned_integer(std::uint64_t value) { packer(*this).pack_uint64(value); }
void MsgpackWriter::signed_integer(std::int64_t value) { packer(*this).pack_int64(value); }
void MsgpackWriter::array(std::uint32_t count) { packer(*this).pack_array(count); }
void MsgpackWriter::map(std::uint32_t count) { packer(*this).pack_map(count); }

// Always eight bytes: the packer would write a whole number as an integer.
void MsgpackWriter::real(double value) {
  char bytes[9] = {static_cast<char>(0xcb)};
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int i = 0; i < 8; ++i) bytes[1 + i] = static_cast<char>(bits >> (56 - 8 * i));
  write(bytes, sizeof(bytes));
}

void MsgpackWriter::string(std::string_view value) {
  const auto size = static_cast<std::uint32_t>(value.size());
  packer(*this).pack_str(size);
  if (size > 0) write(value.data(), size);
}

}  // namespace antdt::wire
