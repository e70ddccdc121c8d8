#include "trainer/sync/gaia/update.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/check.h"
#include "trainer/sync/gaia/significance.h"

namespace antdt::sync::gaia {

static_assert(std::endian::native == std::endian::little, "messages are little-endian");

namespace {

constexpr std::uint32_t kMagic = 0x31414947;  // "GIA1"
constexpr std::size_t kBlock = 256;           // blocks with nothing significant are passed over

enum class Form : std::uint8_t { kIndices, kBitmap, kDense };

struct Header {
  std::uint32_t magic = kMagic;
  std::uint32_t domain = 0;
  std::uint64_t clock = 0;
  std::uint64_t first = 0;
  std::uint64_t elements = 0;
  std::uint32_t whole = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(Header) == kHeaderBytes);

struct ChunkHeader {
  Form form = Form::kIndices;
  std::uint8_t reserved = 0;
  std::uint16_t count = 0;
};
static_assert(sizeof(ChunkHeader) == 4);

std::size_t bitmap_bytes(std::size_t elements) { return (elements + 7) / 8; }

Form smallest(std::size_t elements, std::size_t significant) {
  const std::size_t changes = significant * sizeof(float);
  const std::size_t indices = significant * sizeof(std::uint16_t) + changes;
  const std::size_t bitmap = bitmap_bytes(elements) + changes;
  if (elements * sizeof(float) <= std::min(indices, bitmap)) return Form::kDense;
  return indices <= bitmap ? Form::kIndices : Form::kBitmap;
}

void put(std::vector<std::byte>& out, const void* from, std::size_t bytes) {
  const std::size_t at = out.size();
  out.resize(at + bytes);
  std::memcpy(out.data() + at, from, bytes);
}

template <class T>
T get(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}
float float_at(std::span<const std::byte> floats, std::size_t i) {
  return get<float>(floats.subspan(i * sizeof(float), sizeof(float)));
}

// A chunk whose lengths are right, and its parts.
struct Chunk {
  Form form = Form::kIndices;
  std::size_t count = 0;  // of changes
  std::span<const std::byte> places, changes;
};

// Takes the next chunk, which is about so many elements, from the front of `bytes`. kCorrupt if
// they end within it.
Result<Chunk> take_chunk(std::span<const std::byte>& bytes, std::size_t elements) {
  if (bytes.size() < sizeof(ChunkHeader)) {
    return fail(ErrorKind::kCorrupt, "it ends before the header of a chunk");
  }
  const auto header = get<ChunkHeader>(bytes);
  bytes = bytes.subspan(sizeof header);
  Chunk chunk{header.form, header.count, {}, {}};
  std::size_t places = 0;
  switch (header.form) {
    case Form::kIndices:
      places = chunk.count * sizeof(std::uint16_t);
      break;
    case Form::kBitmap:
      places = bitmap_bytes(elements);
      break;
    case Form::kDense:
      if (header.count != 0) return fail(ErrorKind::kCorrupt, "a dense chunk has a count");
      chunk.count = elements;
      break;
    default:
      return fail(ErrorKind::kCorrupt, "a chunk has the form {}",
                  static_cast<unsigned>(header.form));
  }
  const std::size_t changes = chunk.count * sizeof(float);
  if (header.reserved != 0 || chunk.count > elements) {
    return fail(ErrorKind::kCorrupt, "a chunk of {} elements has {} changes", elements,
                chunk.count);
  }
  if (bytes.size() < places + changes) {
    return fail(ErrorKind::kCorrupt, "it ends within a chunk: {} bytes of {} are there",
                bytes.size(), places + changes);
  }
  chunk.places = bytes.first(places);
  chunk.changes = bytes.subspan(places, changes);
  bytes = bytes.subspan(places + changes);
  return chunk;
}

// Calls each(i, n) for the n-th bit that is set, of element i.
template <class Each>
void for_each_bit(std::span<const std::byte> bitmap, Each each) {
  std::size_t n = 0;
  for (std::size_t at = 0; at < bitmap.size(); ++at) {
    for (auto bits = std::to_integer<std::uint32_t>(bitmap[at]); bits != 0; bits &= bits - 1) {
      each(at * 8 + static_cast<std::size_t>(std::countr_zero(bits)), n++);
    }
  }
}

Status check_places(const Chunk& chunk, std::size_t elements) {
  if (chunk.form == Form::kIndices) {
    std::size_t least = 0;
    for (std::size_t n = 0; n < chunk.count; ++n) {
      const std::size_t i = get<std::uint16_t>(chunk.places.subspan(2 * n, 2));
      if (i < least || i >= elements) {
        return fail(ErrorKind::kCorrupt, "index {} in a chunk of {} elements is out of order", i,
                    elements);
      }
      least = i + 1;
    }
  } else if (chunk.form == Form::kBitmap) {
    std::size_t set = 0;
    std::size_t last = 0;
    for_each_bit(chunk.places, [&](std::size_t i, std::size_t) {
      ++set;
      last = i;
    });
    if (set != chunk.count || last >= elements) {
      return fail(ErrorKind::kCorrupt, "{} bits are set for {} changes of {} elements", set,
                  chunk.count, elements);
    }
  }
  return {};
}

Status check_changes(const Chunk& chunk) {
  for (std::size_t n = 0; n < chunk.count; ++n) {
    if (!std::isfinite(float_at(chunk.changes, n))) {
      return fail(ErrorKind::kCorrupt,
                  "a change is not a finite number: the sender's training has diverged, which a "
                  "lower learning rate may prevent");
    }
  }
  return {};
}

// Calls each(i, n) for the n-th change, which is of element i of the chunk.
template <class Each>
void for_each_change(const Chunk& chunk, Each each) {
  switch (chunk.form) {
    case Form::kIndices:
      for (std::size_t n = 0; n < chunk.count; ++n) {
        each(get<std::uint16_t>(chunk.places.subspan(2 * n, 2)), n);
      }
      break;
    case Form::kBitmap:
      for_each_bit(chunk.places, each);
      break;
    case Form::kDense:
      for (std::size_t i = 0; i < chunk.count; ++i) each(i, i);
      break;
  }
}

// Calls add(i, change) for each change of a message that was checked, which is of its element i.
template <class Add>
void for_each_change(const Message& message, Add add) {
  std::span<const std::byte> rest = message.chunks;
  for (std::size_t at = 0; at < message.elements; at += kChunk) {
    const std::size_t count = std::min<std::size_t>(kChunk, message.elements - at);
    const auto chunk = take_chunk(rest, count);
    ANTDT_CHECK(chunk.has_value(), "a message that was checked: {}", chunk.error().message);
    for_each_change(
        *chunk, [&](std::size_t i, std::size_t n) { add(at + i, float_at(chunk->changes, n)); });
  }
}

}  // namespace

float threshold_at(double initial, double rate_factor) {
  ANTDT_CHECK(initial >= 0 && rate_factor >= 0 && std::isfinite(initial * rate_factor),
              "threshold {} at {} times the learning rate", initial, rate_factor);
  return static_cast<float>(initial * rate_factor);
}

Encoder::Encoder() : indices_(kChunk), changes_(kChunk) {}

std::uint64_t Encoder::encode(const Stamp& stamp, std::uint64_t first,
                              std::span<const float> values, std::span<float> known,
                              float threshold, std::vector<std::byte>& out) {
  ANTDT_CHECK(values.size() == known.size() && threshold >= 0,
              "{} values, {} known ones, threshold {}", values.size(), known.size(), threshold);
  Header header;
  header.domain = stamp.domain;
  header.clock = stamp.clock;
  header.first = first;
  header.elements = values.size();
  header.whole = stamp.whole ? 1 : 0;
  out.clear();
  put(out, &header, sizeof header);
  std::uint64_t significant = 0;
  for (std::size_t at = 0; at < values.size(); at += kChunk) {
    const std::size_t count = std::min(kChunk, values.size() - at);
    const auto of_chunk = values.subspan(at, count);
    // With a threshold of 0, what is not significant has no change at all.
    significant +=
        encode_chunk(of_chunk, known.subspan(at, count), stamp.whole ? 0 : threshold, out);
  }
  return significant;
}

std::size_t Encoder::encode_chunk(std::span<const float> values, std::span<float> known,
                                  float threshold, std::vector<std::byte>& out) {
  const std::size_t count = collect(values, known, threshold);
  const Form form = smallest(values.size(), count);
  const ChunkHeader header{form, 0, static_cast<std::uint16_t>(form == Form::kDense ? 0 : count)};
  put(out, &header, sizeof header);
  switch (form) {
    case Form::kIndices:
      put(out, indices_.data(), count * sizeof(std::uint16_t));
      break;
    case Form::kBitmap: {
      std::array<std::uint8_t, kChunk / 8> bits{};
      for (std::size_t n = 0; n < count; ++n) {
        bits[indices_[n] / 8] |= static_cast<std::uint8_t>(1U << (indices_[n] % 8));
      }
      put(out, bits.data(), bitmap_bytes(values.size()));
      break;
    }
    case Form::kDense:
      for (std::size_t i = 0; i < values.size(); ++i) changes_[i] = values[i] - known[i];
      put(out, changes_.data(), values.size() * sizeof(float));
      std::ranges::copy(values, known.begin());
      return count;
  }
  put(out, changes_.data(), count * sizeof(float));
  for (std::size_t n = 0; n < count; ++n) known[indices_[n]] = values[indices_[n]];
  return count;
}

// Without a branch for each element, of which a processor could not foresee many.
std::size_t Encoder::collect(std::span<const float> values, std::span<float> known,
                             float threshold) {
  std::size_t n = 0;
  for (std::size_t at = 0; at < values.size(); at += kBlock) {
    const std::size_t end = std::min(values.size(), at + kBlock);
    if (count_significant(&values[at], &known[at], end - at, threshold) == 0) continue;
    for (std::size_t i = at; i < end; ++i) {
      const float change = values[i] - known[i];
      indices_[n] = static_cast<std::uint16_t>(i);
      changes_[n] = change;
      n += is_significant(values[i], change, threshold) ? 1 : 0;
    }
  }
  return n;
}

Result<Message> read_message(std::span<const std::byte> bytes, std::uint64_t first,
                             std::uint64_t elements) {
  const auto refuse = [](const Error& error) {
    return fail(ErrorKind::kCorrupt, "a message of updates cannot be read: {}", error.message);
  };
  if (bytes.size() < kHeaderBytes) {
    return fail(ErrorKind::kCorrupt, "a message of updates has {} bytes, less than its header",
                bytes.size());
  }
  const auto header = get<Header>(bytes);
  if (header.magic != kMagic || header.whole > 1 || header.reserved != 0) {
    return fail(ErrorKind::kCorrupt,
                "a message of updates has another header: its sender has another version");
  }
  if (header.first != first || header.elements != elements) {
    return fail(ErrorKind::kCorrupt,
                "a message of domain {} is about {} elements from {}, not about {} from {}: the "
                "domains train different models",
                header.domain, header.elements, header.first, elements, first);
  }
  Message message{{header.domain, header.clock, header.whole == 1},
                  first,
                  elements,
                  0,
                  bytes.subspan(kHeaderBytes)};
  std::span<const std::byte> rest = message.chunks;
  for (std::uint64_t at = 0; at < elements; at += kChunk) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, elements - at));
    const auto chunk = take_chunk(rest, count);
    if (!chunk) return refuse(chunk.error());
    if (const auto good = check_places(*chunk, count); !good) return refuse(good.error());
    if (const auto good = check_changes(*chunk); !good) return refuse(good.error());
    message.changed += chunk->count;
  }
  if (!rest.empty()) {
    return fail(ErrorKind::kCorrupt, "a message of updates has {} bytes too many", rest.size());
  }
  return message;
}

void apply(const Message& message, Direction direction, std::span<float> values,
           std::span<float> known) {
  ANTDT_CHECK(values.size() == message.elements && known.size() == message.elements,
              "{} values and {} known ones for a message of {}", values.size(), known.size(),
              message.elements);
  const float sign = direction == Direction::kAdd ? 1 : -1;
  for_each_change(message, [&](std::size_t i, float change) {
    values[i] += sign * change;
    known[i] += sign * change;
  });
}

void add(const Message& message, std::span<float> sum) {
  ANTDT_CHECK(sum.size() == message.elements, "a sum of {} for a message of {}", sum.size(),
              message.elements);
  for_each_change(message, [&](std::size_t i, float change) { sum[i] += change; });
}

}  // namespace antdt::sync::gaia
