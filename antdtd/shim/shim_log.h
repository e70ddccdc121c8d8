// Writes a worker's output into a bounded, rotated file on a thread of its own, so that a slow disk
// blocks only that thread.
//
// append() copies into a bounded buffer and returns. What does not fit, and what the disk refuses,
// is dropped, counted, and reported in the file at its place: "[antdt: 1234 bytes of output
// dropped]". The file and its predecessor `<path>.1` together hold at most `max_bytes`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/clock.h"

namespace antdt::antdtd {

inline constexpr std::uint64_t kDefaultLogBytes = 64ULL * 1024 * 1024;
inline constexpr std::size_t kLogBufferBytes = 1024 * 1024;

class ShimLog {
 public:
  // The writing thread opens the file and makes its directory, so that a disk that does not answer
  // does not block the start either. max_bytes 0: kDefaultLogBytes.
  ShimLog(std::string path, std::uint64_t max_bytes, std::size_t buffer_bytes = kLogBufferBytes);
  // Ends without waiting if finish() was not called or did not succeed.
  ~ShimLog();
  ShimLog(const ShimLog&) = delete;
  ShimLog& operator=(const ShimLog&) = delete;

  void append(std::string_view bytes);
  // No more output will come. Returns whether everything was passed to the disk within `wait`.
  [[nodiscard]] bool finish(Duration wait);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace antdt::antdtd
