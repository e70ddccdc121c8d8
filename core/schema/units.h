// "10s" and "2GiB": the texts of job.toml for times and sizes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace antdt::schema {

// A whole number or a decimal fraction followed by us, ms, s, m or h; "0" alone
// is allowed. An error for anything else, for less than a microsecond and for
// more than 100 years.
[[nodiscard]] Result<std::chrono::microseconds> parse_duration(std::string_view text);
// The shortest text that parse_duration reads back to the same: "90s" and not
// "90000ms", "1500ms" and not "1.5s".
[[nodiscard]] std::string format_duration(std::chrono::microseconds duration);

// A whole number or a decimal fraction followed by B, KiB, MiB, GiB or TiB (2^10)
// or by KB, MB, GB or TB (10^3); "0" alone is allowed. An error past 2^62.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);
// The shortest text that parse_size reads back to the same.
[[nodiscard]] std::string format_size(std::uint64_t bytes);

}  // namespace antdt::schema
