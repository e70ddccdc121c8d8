// Adapts a reader of the program's own to the trainer.
#pragma once

#include <antdt/kit/parts.h>

#include <memory>
#include <string>

#include "core/result.h"
#include "trainer/data/dataset.h"

namespace antdt::trainer {

// kUsage if its columns cannot be a batch's. An exception of `reader` becomes an error (kCorrupt)
// that names the first record of the read.
[[nodiscard]] Result<std::unique_ptr<data::RecordReader>> adapt_reader(
    const std::string& name, std::unique_ptr<kit::Reader> reader);

}  // namespace antdt::trainer
