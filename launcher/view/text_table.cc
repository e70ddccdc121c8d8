#include "launcher/view/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace antdt::launcher {

// UTF-8: counts the bytes that begin a character.
std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

namespace {

std::string padded(const std::string& cell, std::size_t width, bool right) {
  const std::string space(width - std::min(width, columns_of(cell)), ' ');
  return right ? space + cell : cell + space;
}

}  // namespace

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

std::string clock_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 10) return fmt::format("{:.1f}s", seconds);
  const auto s = static_cast<std::uint64_t>(std::min(std::round(seconds), 1e12));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m {:02}s", s / 60, s % 60);
  return fmt::format("{}h {:02}m", s / 3600, s / 60 % 60);
}

std::vector<std::string> text_table(const std::vector<std::string>& header,
                                    const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::string> titles;
  std::vector<bool> right;
  std::vector<std::size_t> width;
  for (const std::string& title : header) {
    right.push_back(title.ends_with('#'));
    titles.push_back(right.back() ? title.substr(0, title.size() - 1) : title);
    width.push_back(columns_of(titles.back()));
  }
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], columns_of(row[i]));
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      out += (i == 0 ? "" : "  ") + padded(cells[i], width[i], right[i]);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out;
  };
  std::vector<std::string> lines = {line(titles)};
  for (const auto& row : rows) lines.push_back(line(row));
  return lines;
}

std::string cut(const std::string& line, std::size_t width) {
  if (width == 0 || columns_of(line) <= width) return line;
  std::size_t bytes = 0;
  for (std::size_t seen = 0; bytes < line.size(); ++bytes) {
    if ((line[bytes] & 0xC0) != 0x80 && seen++ == width - 1) break;
  }
  return line.substr(0, bytes) + "~";
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::size_t most) {
  std::vector<std::string> lines;
  while (lines.size() + 1 < most && columns_of(text) > width) {
    std::size_t space = text.rfind(' ');
    while (space != std::string_view::npos && space > 0 &&
           columns_of(text.substr(0, space)) > width)
      space = text.rfind(' ', space - 1);
    if (space == std::string_view::npos || space == 0) break;
    lines.emplace_back(text.substr(0, space));
    text.remove_prefix(space + 1);
  }
  lines.emplace_back(text);
  return lines;
}

}  // namespace antdt::launcher
