// Which part of a vector a rank sends and receives when, in a ring all-reduce: a reduce-scatter of
// size-1 rounds, then an all-gather of size-1 rounds (Patarasu and Yuan, "Bandwidth optimal
// all-reduce algorithms for clusters of workstations", JPDC 2009). Each of the size blocks is cut
// into segments, so that one segment is sent while another is added.
//
// Operations are numbered 0 .. operations()-1: operation i is segment i % segments of round i /
// segments. What operation i receives is what operation i + segments sends.
#pragma once

#include <cstddef>
#include <cstdint>

namespace antdt::trainer {

class RingPlan {
 public:
  struct Range {
    std::size_t first = 0;
    std::size_t count = 0;
    bool operator==(const Range&) const = default;
  };

  // `elements` to reduce; a segment has at most `max_segment` of them.
  RingPlan(std::uint32_t rank, std::uint32_t size, std::size_t elements, std::size_t max_segment);

  [[nodiscard]] std::size_t segments() const { return segments_; }
  [[nodiscard]] std::size_t operations() const { return 2 * (size_ - 1) * segments_; }
  [[nodiscard]] Range sent(std::size_t operation) const;
  [[nodiscard]] Range received(std::size_t operation) const;
  // Whether the data that operation i receives are added; otherwise they replace.
  [[nodiscard]] bool adds(std::size_t operation) const;

 private:
  [[nodiscard]] Range segment(std::size_t block, std::size_t index) const;

  std::size_t rank_;
  std::size_t size_;
  std::size_t elements_;
  std::size_t segments_;
};

}  // namespace antdt::trainer
