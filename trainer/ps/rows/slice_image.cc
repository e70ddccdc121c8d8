#include "trainer/ps/rows/slice_image.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

namespace antdt::ps {
namespace {

static_assert(std::endian::native == std::endian::little, "the image is little endian");

constexpr std::array<char, 16> kMagic{"antdt slice 1"};

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}
std::string_view bytes_of(std::span<const float> floats) {
  return {reinterpret_cast<const char*>(floats.data()), floats.size_bytes()};
}

// Reads from the front of the bytes as long as there are enough.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  [[nodiscard]] bool take(void* to, std::size_t bytes) {
    if (bytes > left_.size()) return false;
    if (bytes > 0) std::memcpy(to, left_.data(), bytes);
    left_.remove_prefix(bytes);
    return true;
  }
  template <class T>
  [[nodiscard]] bool take(T& value) {
    return take(&value, sizeof(T));
  }
  [[nodiscard]] bool take(std::string& text, std::size_t bytes) {
    if (bytes > left_.size()) return false;
    text.assign(left_.substr(0, bytes));
    left_.remove_prefix(bytes);
    return true;
  }
  [[nodiscard]] bool take(std::span<float> floats) {
    return take(floats.data(), floats.size_bytes());
  }
  [[nodiscard]] std::size_t left() const { return left_.size(); }

 private:
  std::string_view left_;
};

tl::unexpected<Error> cut_short(std::uint32_t slice) {
  return fail(ErrorKind::kCorrupt, "slice {} is cut short", slice);
}

Status decode_header(Reader& in, std::uint32_t slice, std::size_t tables) {
  std::array<char, 16> magic{};
  std::uint32_t found_slice = 0;
  std::uint32_t found_tables = 0;
  if (!in.take(magic) || !in.take(found_slice) || !in.take(found_tables)) return cut_short(slice);
  if (magic != kMagic) return fail(ErrorKind::kCorrupt, "this is no slice of parameters");
  if (found_slice != slice || found_tables != tables) {
    return fail(ErrorKind::kCorrupt, "slice {} with {} tables where slice {} with {} is expected",
                found_slice, found_tables, slice, tables);
  }
  return {};
}

// Reads the table's header, and returns how many rows follow.
Result<std::uint64_t> decode_table(Reader& in, std::uint32_t slice, const TableSpec& spec,
                                   std::uint32_t state) {
  std::uint32_t length = 0;
  std::string name;
  std::uint32_t found_width = 0;
  std::uint32_t found_state = 0;
  std::uint64_t rows = 0;
  if (!in.take(length) || !in.take(name, length) || !in.take(found_width) ||
      !in.take(found_state) || !in.take(rows)) {
    return cut_short(slice);
  }
  if (name != spec.name || found_width != spec.width || found_state != state) {
    return fail(ErrorKind::kCorrupt,
                "table '{}' of {} + {} floats a row where the model has '{}' of {} + {}: resume "
                "with the [trainer] section that it was written with",
                name, found_width, found_state, spec.name, spec.width, state);
  }
  return rows;
}

Status decode_row(Reader& in, std::uint32_t slice, RowTable& rows) {
  std::uint64_t key = 0;
  // Memory for a row is allocated only once its bytes are known to be there.
  const std::size_t floats = (std::size_t{rows.width()} + rows.state()) * sizeof(float);
  if (!in.take(key) || in.left() < floats) return cut_short(slice);
  const std::uint64_t hash = RowTable::hash(key);
  if (slice_of(key) != slice || rows.find(key, hash) != RowTable::kNone) {
    return fail(ErrorKind::kCorrupt, "slice {} holds key {:#x} {}", slice, key,
                slice_of(key) == slice ? "twice" : "of another slice");
  }
  const std::uint32_t row = rows.add(key, hash);
  if (!in.take(rows.values(row)) || !in.take(rows.state(row))) return cut_short(slice);
  return {};
}

}  // namespace

void encode_slice(const Store& store, std::uint32_t slice,
                  const std::function<void(std::string_view)>& sink) {
  constexpr std::size_t kPiece = 1U << 16;
  std::string piece;
  const auto tables = static_cast<std::uint32_t>(store.tables().size());
  piece.append(kMagic.data(), kMagic.size()).append(bytes_of(slice)).append(bytes_of(tables));
  for (std::uint32_t t = 0; t < tables; ++t) {
    const std::string& name = store.tables()[t].name;
    const RowTable& rows = store.slice(slice, t);
    piece.append(bytes_of(static_cast<std::uint32_t>(name.size()))).append(name);
    piece.append(bytes_of(rows.width())).append(bytes_of(rows.state()));
    piece.append(bytes_of(rows.rows()));
    for (std::uint32_t row = 0; row < rows.rows(); ++row) {
      piece.append(bytes_of(rows.key(row)));
      piece.append(bytes_of(rows.values(row))).append(bytes_of(rows.state(row)));
      if (piece.size() < kPiece) continue;
      sink(piece);
      piece.clear();
    }
  }
  sink(piece);
}

std::uint64_t slice_bytes(const Store& store, std::uint32_t slice) {
  constexpr std::uint64_t kHeader = kMagic.size() + 2 * sizeof(std::uint32_t);
  constexpr std::uint64_t kTableHeader = 3 * sizeof(std::uint32_t) + sizeof(std::uint64_t);
  std::uint64_t bytes = kHeader;
  for (std::uint32_t t = 0; t < store.tables().size(); ++t) {
    const RowTable& rows = store.slice(slice, t);
    const std::uint64_t floats = std::uint64_t{rows.width()} + rows.state();
    bytes += kTableHeader + store.tables()[t].name.size() +
             rows.rows() * (sizeof(std::uint64_t) + floats * sizeof(float));
  }
  return bytes;
}

Status decode_slice(Store& store, std::uint32_t slice, std::string_view bytes) {
  Reader in(bytes);
  ANTDT_RETURN_IF_ERROR(decode_header(in, slice, store.tables().size()));
  for (std::uint32_t t = 0; t < store.tables().size(); ++t) {
    RowTable& rows = store.slice(slice, t);
    ANTDT_TRY(const std::uint64_t count, decode_table(in, slice, store.tables()[t], rows.state()));
    for (std::uint64_t i = 0; i < count; ++i) ANTDT_RETURN_IF_ERROR(decode_row(in, slice, rows));
  }
  if (in.left() > 0) {
    return fail(ErrorKind::kCorrupt, "slice {} has {} bytes too many", slice, in.left());
  }
  return {};
}

}  // namespace antdt::ps
