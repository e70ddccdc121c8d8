// Reads records of text files through their index.
#pragma once

#include <memory>

#include "trainer/data/dataset.h"
#include "trainer/data/formats/features.h"
#include "trainer/data/formats/labels.h"
#include "trainer/data/formats/row_format.h"
#include "trainer/data/index/index.h"
#include "trainer/data/line_files.h"

namespace antdt::data {

class TextReader final : public RecordReader {
 public:
  // `labels` and `ids` belong to the training data.
  [[nodiscard]] static Result<std::unique_ptr<RecordReader>> open(Index index,
                                                                  std::unique_ptr<RowFormat> format,
                                                                  Labels labels, IdMap ids);

  [[nodiscard]] const DataShape& shape() const override { return shape_; }
  [[nodiscard]] std::uint64_t records() const override { return lines_.records(); }
  [[nodiscard]] Status read(std::span<const std::uint64_t> record_numbers, Examples& out) override;

 private:
  TextReader(LineFiles lines, std::unique_ptr<RowFormat> format, Labels labels, IdMap ids);
  [[nodiscard]] Status decode(std::uint64_t record, std::size_t row, Examples& out);

  LineFiles lines_;
  std::unique_ptr<RowFormat> format_;
  Labels labels_;
  IdMap ids_;
  DataShape shape_;
  Row row_;
};

}  // namespace antdt::data
