// Makes the index of a data set in one pass over it.
#pragma once

#include <memory>
#include <string>

#include "core/clock.h"
#include "core/result.h"
#include "trainer/data/data_config.h"
#include "trainer/data/formats/labels.h"
#include "trainer/data/formats/row_format.h"
#include "trainer/data/index/index.h"

namespace antdt::data {

// Describes in words how the bytes of a file become records: format, options, and the version of
// this code. If two descriptions differ, the same file's records may be numbered differently.
[[nodiscard]] std::string built_by(const DataConfig& config);

// Null for formats that are not text.
[[nodiscard]] std::unique_ptr<RowFormat> make_row_format(const DataConfig& config);

// How far a build is shows on the disk, to those that wait, at most so much later.
inline constexpr Duration kShownWithin = std::chrono::milliseconds(200);

// The index of `config`'s files: the one in `cache_dir` if it is valid, else a new one, which is
// built under a lock file so that processes that start together build it once, and those that wait
// tell how far it is. What a build that was killed left there is removed once it is an hour old.
// `train` has the classes that labels must belong to; null: learn them.
[[nodiscard]] Result<Index> ensure_index(const DataConfig& config, const std::string& cache_dir,
                                         const Index* train, Opening& opening);

}  // namespace antdt::data
