// A reader of the program's own as the trainer's.
#pragma once

#include <antdt/kit/parts.h>

#include <memory>
#include <string>

#include "core/result.h"
#include "trainer/data/dataset.h"

namespace antdt::trainer {

// kUsage when its columns cannot be a batch's. What `reader` throws while it reads is an error
// (kCorrupt) that names the first record it was to read.
[[nodiscard]] Result<std::unique_ptr<data::RecordReader>> adapt_reader(
    const std::string& name, std::unique_ptr<kit::Reader> reader);

}  // namespace antdt::trainer
