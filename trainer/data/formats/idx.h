// IDX files: images of unsigned bytes in three dimensions (count, height, width)
// or four (count, channels, height, width), and label files in one (count).
// Pixels become value / 255.
#pragma once

#include <memory>

#include "trainer/data/data_config.h"
#include "trainer/data/dataset.h"
#include "trainer/data/index/index.h"
#include "trainer/data/index/index_writer.h"

namespace antdt::data {

// Checks the files and writes an index without offsets: sizes, fingerprints.
// Files of images and labels take turns in it.
[[nodiscard]] Status build_idx(const DataConfig& config, IndexWriter& writer);
// `classes` is that of the training data.
[[nodiscard]] Result<std::unique_ptr<RecordReader>> open_idx(const Index& index,
                                                             std::uint32_t classes);

}  // namespace antdt::data
