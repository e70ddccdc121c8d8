// Times and sizes as texts of job.toml: "10s" and "2GiB".
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace antdt::schema {

// Parses a whole number or a decimal fraction followed by us, ms, s, m or h; "0" alone is allowed.
// Anything else, less than a microsecond, and more than 100 years are errors.
[[nodiscard]] Result<std::chrono::microseconds> parse_duration(std::string_view text);
// The shortest text that parse_duration reads back to the same: "90s" and not
// "90000ms", "1500ms" and not "1.5s".
[[nodiscard]] std::string format_duration(std::chrono::microseconds duration);

// Parses a whole number or a decimal fraction followed by B, KiB, MiB, GiB or TiB (2^10) or by KB,
// MB, GB or TB (10^3); "0" alone is allowed. More than 2^62 is an error.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);
// The shortest text that parse_size reads back to the same.
[[nodiscard]] std::string format_size(std::uint64_t bytes);

}  // namespace antdt::schema
