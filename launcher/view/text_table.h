// Numbers, times and tables as people read them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace antdt::launcher {

// 1234567 -> "1,234,567"
[[nodiscard]] std::string grouped(std::uint64_t number);
// 75 s -> "1m 15s"; below a minute with a tenth where it tells something: "9.4s"
[[nodiscard]] std::string clock_text(double seconds);

// Columns as wide as their widest cell, two spaces apart; numbers to the right
// (a column is of numbers when its header ends with '#', which is not shown).
// Lines have no spaces at the end.
[[nodiscard]] std::vector<std::string> text_table(
    const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);

// At most `width` columns of a terminal; a cut line ends with "~".
[[nodiscard]] std::string cut(const std::string& line, std::size_t width);

}  // namespace antdt::launcher
