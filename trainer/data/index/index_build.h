// The pass over a data set that makes its index.
#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "trainer/data/data_config.h"
#include "trainer/data/formats/labels.h"
#include "trainer/data/formats/row_format.h"
#include "trainer/data/index/index.h"

namespace antdt::data {

// What decides how the bytes of a file become records, in words: format, options, and the
// version of this code. Two that differ may number the same file's records differently.
[[nodiscard]] std::string built_by(const DataConfig& config);

// Nothing for formats that are not text.
[[nodiscard]] std::unique_ptr<RowFormat> make_row_format(const DataConfig& config);

// The index of `config`'s files: that in `cache_dir` if it is valid, else a new
// one, built under a lock file so that processes that start together build it
// once. `train` holds the classes that labels must be of; nullptr: learn them.
[[nodiscard]] Result<Index> ensure_index(const DataConfig& config, const std::string& cache_dir,
                                         const Index* train);

}  // namespace antdt::data
