#include "trainer/data/formats/criteo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "trainer/data/formats/features.h"

namespace antdt::data {
namespace {

constexpr std::size_t kFields = 1 + kCriteoNumbers + kCriteoCategories;
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// The value of each hexadecimal digit; 16 for other characters.
constexpr std::array<std::uint8_t, 256> kHexDigit = [] {
  std::array<std::uint8_t, 256> table{};
  table.fill(16);
  for (int i = 0; i < 10; ++i)
    table[static_cast<std::size_t>('0' + i)] = static_cast<std::uint8_t>(i);
  for (int i = 0; i < 6; ++i) {
    table[static_cast<std::size_t>('a' + i)] = static_cast<std::uint8_t>(10 + i);
    table[static_cast<std::size_t>('A' + i)] = static_cast<std::uint8_t>(10 + i);
  }
  return table;
}();

// Both functions advance to the field's end and return whether it is well-formed.
bool read_number(const char*& at, const char* end, double& value) {
  const char* first = at;
  const bool negative = at != end && *at == '-';
  if (negative) ++at;
  std::uint64_t magnitude = 0;  // wraps around if there are too many digits, which is refused below
  const char* digits = at;
  while (at != end && *at >= '0' && *at <= '9') {
    magnitude = magnitude * 10 + static_cast<std::uint64_t>(*at++ - '0');
  }
  const auto count = at - digits;
  if (count == 0 || count > 18) {
    value = kMissing;
    return at == first && (at == end || *at == '\t');
  }
  value = static_cast<double>(magnitude);
  if (negative) value = -value;
  return at == end || *at == '\t';
}

bool read_category(const char*& at, const char* end, std::uint64_t& key) {
  const char* first = at;
  std::uint64_t value = 0;
  while (at != end) {
    const std::uint8_t digit = kHexDigit[static_cast<unsigned char>(*at)];
    if (digit == 16) break;
    value = value << 4 | digit;
    ++at;
  }
  key = at == first ? kMissingKey : value;
  return at - first <= 16 && (at == end || *at == '\t');
}

std::string_view field_of(std::string_view line, std::size_t index) {
  for (; index > 0; --index) line.remove_prefix(line.find('\t') + 1);
  return line.substr(0, line.find('\t'));
}

// The slow path: finds out why parse() refused a row.
std::string explain(std::string_view line) {
  const auto fields = static_cast<std::size_t>(std::count(line.begin(), line.end(), '\t')) + 1;
  if (fields != kFields) {
    return fmt::format(
        "{} field{} where {} are expected (label, 13 numbers, 26 categories, "
        "separated by tabs)",
        fields, fields == 1 ? "" : "s", kFields);
  }
  const std::string_view label = field_of(line, 0);
  if (label != "0" && label != "1") return fmt::format("the label is '{}', not 0 or 1", label);
  for (std::size_t i = 1; i < kFields; ++i) {
    const std::string_view field = field_of(line, i);
    const char* at = field.data();
    double number = 0;
    std::uint64_t key = 0;
    if (i <= kCriteoNumbers && !read_number(at, field.data() + field.size(), number)) {
      return fmt::format("field {} (number I{}) is '{}', not a whole number", i + 1, i,
                         field.substr(0, 40));
    }
    if (i > kCriteoNumbers && !read_category(at, field.data() + field.size(), key)) {
      return fmt::format("field {} (category C{}) is '{}', not hexadecimal", i + 1,
                         i - kCriteoNumbers, field.substr(0, 40));
    }
  }
  return "malformed";
}

bool parse_fast(std::string_view line, Row& row) {
  const char* at = line.data();
  const char* end = at + line.size();
  if (line.size() < kFields || (*at != '0' && *at != '1')) return false;
  row.label = line.substr(0, 1);
  ++at;
  for (std::size_t i = 0; i < kCriteoNumbers; ++i) {
    if (at == end || *at != '\t') return false;
    ++at;
    if (!read_number(at, end, row.numbers[i])) return false;
  }
  for (std::size_t i = 0; i < kCriteoCategories; ++i) {
    if (at == end || *at != '\t') return false;
    ++at;
    if (!read_category(at, end, row.keys[i])) return false;
  }
  return at == end;
}

}  // namespace

bool CriteoFormat::parse(std::string_view line, Row& row) const {
  row.numbers.resize(kCriteoNumbers);
  row.keys.resize(kCriteoCategories);
  if (parse_fast(line, row)) return true;
  row.problem = explain(line);
  return false;
}

}  // namespace antdt::data
