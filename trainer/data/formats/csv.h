// Text with one record on each line and a separator between fields.
//
// A field may be in double quotes, with "" for a quote inside; spaces around an unquoted field are
// ignored. A quoted field must end on its line. An empty number or category is missing.
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
  // Removes the field at the front of `rest` with the separator after it; `unquoted` stores a field
  // that had quotes in it. Returns the problem; empty: none.
  [[nodiscard]] std::string next_field(std::string_view& rest, bool& more, std::string& unquoted,
                                       std::string_view& field) const;

  std::vector<Column> columns_;
  char separator_;
  bool header_;
  std::size_t numbers_ = 0;
  std::size_t categories_ = 0;
};

}  // namespace antdt::data
