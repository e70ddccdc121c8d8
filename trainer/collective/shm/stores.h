// How bytes are written into memory that another core reads next.
//
// An ordinary store takes the cache line from the core that read it last. Between cores that have a
// cache in common that is quick, and the reader finds the line there. Between other cores it takes
// some 30 ns for each line, 2 GB/s, while streaming stores, which go to memory without asking for
// the line, write 28 GB/s; but then the reader has to get it from memory. Which cores a process and
// its peers run on changes, and in a virtual machine it cannot be asked. So a member measures its
// own copies (docs/results/collective.md has the rates).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/clock.h"

namespace antdt::trainer::shm {

// Decides which stores to use. Pure.
class StoreChoice {
 public:
  // A copy with ordinary stores below this rate is slow. Between cores with a common cache they
  // reach three times as much, between others half.
  static constexpr double kSlowBytesPerSecond = 5e9;
  // So many slow ones among kWindow copies: a process that lost its CPU meanwhile looks slow, too,
  // and where processes share CPUs not every copy of a slow one is.
  static constexpr int kSlowCopies = 4;
  static constexpr int kWindow = 8;
  // So many copies are then made with streaming stores before ordinary ones are tried again.
  static constexpr int kStreamedCopies = 256;
  // A shorter copy says nothing.
  static constexpr std::size_t kLeastBytes = 32UL * 1024;

  [[nodiscard]] bool streams() const { return streamed_left_ > 0; }
  // A copy of so many bytes was made, with the stores that streams() said before it.
  void copied(std::size_t bytes, Duration took) {
    if (bytes < kLeastBytes) return;
    if (streams()) {
      --streamed_left_;
      return;
    }
    const bool slow = static_cast<double>(bytes) < kSlowBytesPerSecond * to_seconds(took);
    slow_ += slow ? 1 : 0;
    ++copies_;
    if (slow_ == kSlowCopies) streamed_left_ = kStreamedCopies;
    if (slow_ == kSlowCopies || copies_ == kWindow) slow_ = copies_ = 0;
  }

 private:
  int copies_ = 0;         // of this window
  int slow_ = 0;           // of these
  int streamed_left_ = 0;  // copies until ordinary stores are tried
};

// `to` begins at a multiple of 16 bytes. What was written is ordered before the thread's next
// stores.
void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace antdt::trainer::shm
