#include "trainer/ps/rows/rows.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace antdt::ps {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little endian");

template <class T>
std::string bytes_of(std::span<const T> items) {
  std::string bytes(items.size_bytes(), '\0');
  if (!items.empty()) std::memcpy(bytes.data(), items.data(), items.size_bytes());
  return bytes;
}

template <class T>
std::vector<T> items_of(const std::string& bytes) {
  std::vector<T> items(bytes.size() / sizeof(T));
  if (!items.empty()) std::memcpy(items.data(), bytes.data(), items.size() * sizeof(T));
  return items;
}

}  // namespace

std::string to_bytes(std::span<const std::uint64_t> keys) { return bytes_of(keys); }
std::string to_bytes(std::span<const float> values) { return bytes_of(values); }
std::string to_bytes(std::span<const double> values) { return bytes_of(values); }

Result<std::vector<std::uint64_t>> keys_from_bytes(const std::string& bytes) {
  if (bytes.size() % sizeof(std::uint64_t) != 0) {
    return fail(ErrorKind::kCorrupt, "{} bytes are no whole number of keys", bytes.size());
  }
  auto keys = items_of<std::uint64_t>(bytes);
  if (std::ranges::adjacent_find(keys, std::greater_equal()) != keys.end()) {
    return fail(ErrorKind::kCorrupt, "the keys do not rise");
  }
  return keys;
}

Result<std::vector<float>> floats_from_bytes(const std::string& bytes, std::size_t count) {
  if (bytes.size() != count * sizeof(float)) {
    return fail(ErrorKind::kCorrupt, "{} bytes where {} floats are expected", bytes.size(), count);
  }
  return items_of<float>(bytes);
}

Result<std::vector<double>> doubles_from_bytes(const std::string& bytes, std::size_t count) {
  if (bytes.size() != count * sizeof(double)) {
    return fail(ErrorKind::kCorrupt, "{} bytes where {} doubles are expected", bytes.size(), count);
  }
  return items_of<double>(bytes);
}

}  // namespace antdt::ps
