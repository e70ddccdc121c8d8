// Criteo's click logs: a label (0 or 1), 13 whole numbers and 26 categories in hexadecimal,
// separated by tabs. Numbers and categories may be empty (missing), and numbers may be negative.
#pragma once

#include "trainer/data/formats/row_format.h"

namespace antdt::data {

inline constexpr std::size_t kCriteoNumbers = 13;
inline constexpr std::size_t kCriteoCategories = 26;

class CriteoFormat final : public RowFormat {
 public:
  [[nodiscard]] std::size_t numbers() const override { return kCriteoNumbers; }
  [[nodiscard]] std::size_t categories() const override { return kCriteoCategories; }
  [[nodiscard]] bool parse(std::string_view line, Row& row) const override;
};

}  // namespace antdt::data
