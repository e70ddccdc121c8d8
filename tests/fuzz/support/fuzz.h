// Shared by the fuzzers. Each is an ANTDT_FUZZ_TARGET and aborts (by a sanitizer or
// ANTDT_CHECK) on a defect; an Error is never a finding.
#pragma once

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/check.h"

// ANTDT_FUZZ_TARGET(name)(const std::uint8_t* data, std::size_t size) { ...; return 0; } is what
// the program name_fuzz runs with each input.
#define ANTDT_FUZZ_TARGET(name)                                                         \
  static int fuzz_##name(const std::uint8_t*, std::size_t);                             \
  static const bool is_a_target_##name = ::antdt::fuzz::add_target(#name, fuzz_##name); \
  static int fuzz_##name

namespace antdt::fuzz {

using Target = int (*)(const std::uint8_t* data, std::size_t size);
bool add_target(std::string_view name, Target target);

// An input taken apart from its front; zeros and nothing after its end.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  [[nodiscard]] bool empty() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  // A part whose length is in one byte.
  std::string_view part() { return take(byte()); }
  // A part whose length is in two bytes, little-endian.
  std::string_view long_part() {
    const std::size_t low = byte();
    return take(low | static_cast<std::size_t>(byte()) << 8);
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view take(std::size_t size) {
    const std::string_view part = rest_.substr(0, size);
    rest_.remove_prefix(part.size());
    return part;
  }
  std::string_view rest_;
};

// A file in memory with a path, for code that reads only files.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("fuzz", MFD_CLOEXEC)) { ANTDT_CHECK(fd_ >= 0, "no memfd"); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(fd_); }

  void write(std::string_view bytes) const {
    const bool whole = ftruncate(fd_, 0) == 0 && pwrite(fd_, bytes.data(), bytes.size(), 0) ==
                                                     static_cast<ssize_t>(bytes.size());
    ANTDT_CHECK(whole, "{} bytes cannot be written to memory", bytes.size());
  }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }

 private:
  int fd_;
};

}  // namespace antdt::fuzz
