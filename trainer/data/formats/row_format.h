// Parses a line of text into its values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace antdt::data {

// The values of one row; reused from row to row.
struct Row {
  std::string_view label;           // refers into the line
  std::vector<double> numbers;      // NaN if missing
  std::vector<std::uint64_t> keys;  // keys of the categories: see features.h
  std::string problem;              // why parse() refused the row
};

class RowFormat {
 public:
  virtual ~RowFormat() = default;
  [[nodiscard]] virtual std::size_t numbers() const = 0;
  [[nodiscard]] virtual std::size_t categories() const = 0;
  // Number of fields with ids: numbers first, then categories.
  [[nodiscard]] std::size_t fields() const { return numbers() + categories(); }
  // Parses a line without its line end. False if it is malformed; row.problem says why.
  [[nodiscard]] virtual bool parse(std::string_view line, Row& row) const = 0;
  // Whether the first line of each file is a header; check_header: what is wrong with it, if
  // anything.
  [[nodiscard]] virtual bool has_header() const { return false; }
  [[nodiscard]] virtual std::string check_header(std::string_view) const { return {}; }
  [[nodiscard]] virtual bool has_label() const { return true; }
  [[nodiscard]] virtual bool accepts_text_labels() const { return false; }
};

}  // namespace antdt::data
