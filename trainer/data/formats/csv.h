// Text with one record a line and a separator between fields.
//
// A field may be in double quotes, with "" for a quote inside; spaces around an
// unquoted field do not count. A quoted field ends on its line. An empty number
// or category is missing.
#pragma once

#include <vector>

#include "trainer/data/data_config.h"
#include "trainer/data/formats/row_format.h"

namespace antdt::data {

class CsvFormat final : public RowFormat {
 public:
  CsvFormat(std::vector<Column> columns, char separator, bool header);
  [[nodiscard]] std::size_t numbers() const override { return numbers_; }
  [[nodiscard]] std::size_t categories() const override { return categories_; }
  [[nodiscard]] bool parse(std::string_view line, Row& row) const override;
  [[nodiscard]] bool has_header() const override { return header_; }
  [[nodiscard]] std::string check_header(std::string_view line) const override;
  [[nodiscard]] bool accepts_text_labels() const override { return true; }

 private:
  // Takes the field at the front of `rest` and the separator after it away;
  // `unquoted` holds a field that had quotes in it. Empty: fine; else the problem.
  [[nodiscard]] std::string next_field(std::string_view& rest, bool& more, std::string& unquoted,
                                       std::string_view& field) const;

  std::vector<Column> columns_;
  char separator_;
  bool header_;
  std::size_t numbers_ = 0;
  std::size_t categories_ = 0;
};

}  // namespace antdt::data
