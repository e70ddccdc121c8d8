// IDX files: images of unsigned bytes in three dimensions (count, height, width) or four (count,
// channels, height, width), and label files in one (count). A pixel becomes value / 255.
#pragma once

#include <memory>

#include "trainer/data/data_config.h"
#include "trainer/data/dataset.h"
#include "trainer/data/index/index.h"
#include "trainer/data/index/index_writer.h"

namespace antdt::data {

// Checks the files and writes an index with sizes and fingerprints but without offsets. Image and
// label files alternate in it.
[[nodiscard]] Status build_idx(const DataConfig& config, IndexWriter& writer, Opening& opening);
// `classes` is the number of classes of the training data.
[[nodiscard]] Result<std::unique_ptr<RecordReader>> open_idx(const Index& index,
                                                             std::uint32_t classes);

}  // namespace antdt::data
