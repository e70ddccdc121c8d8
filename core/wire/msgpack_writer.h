// Writes msgpack (https://github.com/msgpack/msgpack/blob/master/spec.md), as far as messages need
// it, with msgpack-c's packer. A user of this class does not have to parse the packer's headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace antdt::wire {

class MsgpackWriter {
 public:
  MsgpackWriter() : bytes_(256, '\0') {}
  void nil();
  void boolean(bool value);
  void unsigned_integer(std::uint64_t value);
  void signed_integer(std::int64_t value);
  void real(double value);
  void string(std::string_view value);
  void array(std::uint32_t count);  // `count` values must follow
  void map(std::uint32_t count);    // `count` pairs of a key and a value must follow
  // Once, at the end.
  [[nodiscard]] std::string take() {
    bytes_.resize(size_);
    return std::move(bytes_);
  }

  // The packer calls this several times for each value: it is one comparison and a copy.
  void write(const char* bytes, std::size_t size) {
    if (bytes_.size() - size_ < size) return write_behind(bytes, size);
    std::memcpy(bytes_.data() + size_, bytes, size);
    size_ += size;
  }

 private:
  void write_behind(const char* bytes, std::size_t size);

  std::string bytes_;  // the first size_ are written
  std::size_t size_ = 0;
};

}  // namespace antdt::wire
