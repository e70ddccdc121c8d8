// What Gaia's domains send one another: the significant part of a domain's updates. Pure.
//
// A domain has two arrays of the model's size. `values` are its replica's parameters. `known` is
// the replica as the other domains know it: without those of the domain's own updates that it has
// not sent. So values - known is what the paper calls the accumulated update. The optimizer changes
// values alone, a message that is received changes both, and sending an element makes its known
// value equal to its value. There is no array of accumulated updates besides, and what is sent is
// exactly what has become of the sender's own value.
//
// An element is significant if |values - known| > threshold * |values|. That needs no division, and
// an element whose value is 0 is significant as soon as it has an update.
//
// A message, in little-endian numbers:
//
//     magic u32, domain u32, clock u64, first u64, elements u64, whole u32, 0 u32
//     then for every kChunk elements, the last chunk having what is left:
//       form u8, 0 u8, count u16
//       kIndices:  count x index u16 in the chunk, ascending; count x change f32
//       kBitmap:   a bit for each element of the chunk; count x change f32
//       kDense:    count is 0; a change f32 for each element of the chunk
//
// Each chunk has the form that makes it smallest. A dense chunk has all changes, significant or
// not, because they cost nothing more. A message is about a range of the model's elements, so that
// the members of a domain can each send a part of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"

namespace antdt::sync::gaia {

inline constexpr std::size_t kChunk = 65536;  // elements: indices in it have two bytes
inline constexpr std::size_t kHeaderBytes = 40;

// Who sent a message, and which.
struct Stamp {
  std::uint32_t domain = 0;
  std::uint64_t clock = 0;  // the messages of the domain have clocks 1, 2, ...
  bool whole = false;       // every change is in it: afterwards nothing is pending in the range
};

// T of the paper at a time when the learning rate is `rate_factor` times that of the job: it
// shrinks with the learning rate. Both are finite and not negative.
[[nodiscard]] float threshold_at(double initial, double rate_factor);

// The bytes of a dense message about so many elements.
[[nodiscard]] constexpr std::uint64_t dense_bytes(std::uint64_t elements) {
  return kHeaderBytes + (elements + kChunk - 1) / kChunk * 4 + elements * sizeof(float);
}

// Writes messages. Keeps 400 KB of scratch memory; one thread at a time uses it.
class Encoder {
 public:
  Encoder();

  // Replaces `out` by the message about the elements [first, first + values.size()), in one pass
  // over both arrays, and makes the known values of what is sent equal to the values. If the stamp
  // says whole, everything that is pending is sent, and `threshold` is ignored. Returns how many
  // elements were significant. A change that is not finite is significant: the message is then
  // refused by those who read it, so training that has diverged is seen at once.
  std::uint64_t encode(const Stamp& stamp, std::uint64_t first, std::span<const float> values,
                       std::span<float> known, float threshold, std::vector<std::byte>& out);

 private:
  // Of one chunk. Returns its number of significant elements.
  std::size_t encode_chunk(std::span<const float> values, std::span<float> known, float threshold,
                           std::vector<std::byte>& out);
  std::size_t collect(std::span<const float> values, std::span<float> known, float threshold);

  std::vector<std::uint16_t> indices_;  // of the significant elements of a chunk
  std::vector<float> changes_;
};

// A message that has been checked as a whole. Refers to the bytes that it was read from.
struct Message {
  Stamp stamp;
  std::uint64_t first = 0;
  std::uint64_t elements = 0;
  std::uint64_t changed = 0;  // how many changes are in it
  std::span<const std::byte> chunks;
};

// kCorrupt unless the bytes are a message about exactly these elements: every length, form, index
// and number is checked, so nothing of a message is applied if a part of it is wrong.
[[nodiscard]] Result<Message> read_message(std::span<const std::byte> bytes, std::uint64_t first,
                                           std::uint64_t elements);

enum class Direction : std::uint8_t {
  kAdd,
  kWithdraw,  // the message was added before; exact except for rounding
};
// Both arrays are those of the message's range, which read_message() has checked.
void apply(const Message& message, Direction direction, std::span<float> values,
           std::span<float> known);

// Adds the changes to one array of the message's range, such as the sum of a domain's changes.
void add(const Message& message, std::span<float> sum);

}  // namespace antdt::sync::gaia
