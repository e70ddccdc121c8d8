// A worker's output into a file that is bounded and rotated, by a thread that
// may be held up by the disk while nobody else is.
//
// append() copies into a bounded buffer and returns; what does not fit, and
// what the disk refuses, is dropped, counted, and said in the file at its place:
// "[antdt: 1234 bytes of output dropped]". The file and its predecessor `<path>.1`
// together hold at most `max_bytes`.
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
  // The file is opened (and its directory made) by the writing thread: a hung
  // disk does not hold up the start either. max_bytes 0: kDefaultLogBytes.
  ShimLog(std::string path, std::uint64_t max_bytes, std::size_t buffer_bytes = kLogBufferBytes);
  // Ends without waiting if finish() was not called or did not finish.
  ~ShimLog();
  ShimLog(const ShimLog&) = delete;
  ShimLog& operator=(const ShimLog&) = delete;

  void append(std::string_view bytes);
  // No more will come: whether everything was handed to the disk within `wait`.
  [[nodiscard]] bool finish(Duration wait);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace antdt::antdtd
