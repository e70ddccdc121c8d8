#include "core/schema/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

namespace antdt::schema {

namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 5> kTimes = {
    {{"h", 3600e6}, {"m", 60e6}, {"s", 1e6}, {"ms", 1e3}, {"us", 1}}};
constexpr std::array<Unit, 9> kSizes = {{{"TiB", 1024.0 * 1024 * 1024 * 1024},
                                         {"GiB", 1024.0 * 1024 * 1024},
                                         {"MiB", 1024.0 * 1024},
                                         {"KiB", 1024.0},
                                         {"B", 1},
                                         {"TB", 1e12},
                                         {"GB", 1e9},
                                         {"MB", 1e6},
                                         {"KB", 1e3}}};
constexpr double kLongest = 100.0 * 365 * 24 * 3600e6;
constexpr double kLargest = 4611686018427387904.0;  // 2^62

// The text as a number of the smallest unit, or empty.
std::optional<double> parse(std::string_view text, std::span<const Unit> units) {
  if (text == "0") return 0;
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !(number >= 0)) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const Unit& unit : units) {
    if (unit.name == rest) return number * unit.factor;
  }
  return std::nullopt;
}

// In whole multiples of the largest unit that fits; `units` must be in falling order.
std::string format(std::uint64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    const auto factor = static_cast<std::uint64_t>(unit.factor);
    if (value != 0 && value % factor == 0) return fmt::format("{}{}", value / factor, unit.name);
  }
  return fmt::format("0{}", units.back().name);
}

}  // namespace

Result<std::chrono::microseconds> parse_duration(std::string_view text) {
  const std::optional<double> us = parse(text, kTimes);
  if (!us) {
    return fail(ErrorKind::kUsage,
                "'{}' is not a time: write a number and us, ms, s, m or h, as in \"10s\"", text);
  }
  if (*us > kLongest) return fail(ErrorKind::kUsage, "'{}' is longer than 100 years", text);
  if (*us != std::floor(*us)) {
    return fail(ErrorKind::kUsage, "'{}' is not a whole number of microseconds", text);
  }
  return std::chrono::microseconds(static_cast<std::int64_t>(*us));
}

std::string format_duration(std::chrono::microseconds duration) {
  if (duration.count() == 0) return "0s";
  return format(static_cast<std::uint64_t>(duration.count()), kTimes);
}

Result<std::uint64_t> parse_size(std::string_view text) {
  const std::optional<double> bytes = parse(text, kSizes);
  if (!bytes) {
    return fail(ErrorKind::kUsage,
                "'{}' is not a size: write a number and B, KiB, MiB, GiB or TiB, as in \"2GiB\"",
                text);
  }
  if (*bytes > kLargest) return fail(ErrorKind::kUsage, "'{}' is more than 2^62 bytes", text);
  if (*bytes != std::floor(*bytes)) {
    return fail(ErrorKind::kUsage, "'{}' is not a whole number of bytes", text);
  }
  return static_cast<std::uint64_t>(*bytes);
}

std::string format_size(std::uint64_t bytes) { return format(bytes, std::span(kSizes).first(5)); }

}  // namespace antdt::schema
