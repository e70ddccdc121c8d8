// Formats numbers, times and tables for people. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace antdt::launcher {

// 1234567 -> "1,234,567"
[[nodiscard]] std::string grouped(std::uint64_t number);
// 75 s -> "1m 15s"; below a minute with a tenth if that is not zero: "9.4s"
[[nodiscard]] std::string clock_text(double seconds);

// Columns are as wide as their widest cell, two spaces apart. A column whose header ends with '#'
// (which is not shown) holds numbers and is aligned to the right. Lines have no trailing spaces.
[[nodiscard]] std::vector<std::string> text_table(
    const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);

// How many columns of a terminal the text takes.
[[nodiscard]] std::size_t columns_of(std::string_view text);

// At most `width` columns of a terminal; a line that was cut ends with "~".
[[nodiscard]] std::string cut(const std::string& line, std::size_t width);

// The text on at most `most` lines of `width` columns, broken at spaces. The last one may be
// longer.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t width,
                                               std::size_t most);

}  // namespace antdt::launcher
