// The lines of a data set's text files as numbered records, through their index.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "trainer/data/content/contents.h"
#include "trainer/data/index/index.h"

namespace antdt::data {

class LineFiles {
 public:
  // kCorrupt if the index contradicts itself or a file is not the one that was indexed.
  [[nodiscard]] static Result<LineFiles> open(Index index);

  [[nodiscard]] std::uint64_t records() const { return index_.meta().records; }
  [[nodiscard]] const IndexMeta& meta() const { return index_.meta(); }
  // The record's line without its end; valid until the next call. For one thread at a time.
  [[nodiscard]] Result<std::string_view> line(std::uint64_t record);
  // The record's line will be asked for soon.
  void expect(std::uint64_t record) const;
  // For messages: the file and where in its content the record begins. `record` < records().
  [[nodiscard]] std::string place_of(std::uint64_t record) const;

 private:
  explicit LineFiles(Index index) : index_(std::move(index)) {}
  [[nodiscard]] std::size_t file_of(std::uint64_t record) const;

  Index index_;
  Contents contents_;
};

}  // namespace antdt::data
