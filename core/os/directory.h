// What is in a directory. (The iterators of <filesystem> throw where a disk fails in between.)
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace antdt {

// The names in `directory`, sorted, without "." and "..". kIo if it cannot be read to its end; a
// directory that is not there has none.
[[nodiscard]] Result<std::vector<std::string>> names_in(const std::string& directory);

}  // namespace antdt
