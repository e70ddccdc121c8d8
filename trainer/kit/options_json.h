// [user] of a job's effective configuration.
#pragma once

#include <antdt/kit/options.h>

#include <string>

#include "core/result.h"

namespace antdt::trainer {

// kUsage names a value of a kind that kit::Options does not have: a list of lists, or of booleans.
[[nodiscard]] Result<kit::Options> parse_options(const std::string& config_json);
// An error (kUsage) if some keys were not read; it names these and those that were read.
[[nodiscard]] Status all_read(const kit::Options& options);

}  // namespace antdt::trainer
