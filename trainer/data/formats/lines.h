// Lines as they are, for programs that take them apart themselves: nothing is malformed.
#pragma once

#include <string_view>

#include "trainer/data/formats/row_format.h"

namespace antdt::data {

class LinesFormat final : public RowFormat {
 public:
  [[nodiscard]] std::size_t numbers() const override { return 0; }
  [[nodiscard]] std::size_t categories() const override { return 0; }
  [[nodiscard]] bool parse(std::string_view, Row&) const override { return true; }
  [[nodiscard]] bool has_label() const override { return false; }
};

}  // namespace antdt::data
