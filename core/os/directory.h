// What is in a directory, and what may be. (The iterators of <filesystem> throw where a disk fails
// in between.)
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace antdt {

// The names in `directory`, sorted, without "." and "..". kIo if it cannot be read to its end; a
// directory that is not there has none.
[[nodiscard]] Result<std::vector<std::string>> names_in(const std::string& directory);

// Whether it names something in a directory, and neither the directory, nor the one above, nor
// anything below. For names that come from elsewhere, and become part of a path.
[[nodiscard]] constexpr bool is_file_name(std::string_view name) {
  constexpr std::size_t kLongest = 255;
  return !name.empty() && name != "." && name != ".." && name.size() <= kLongest &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

}  // namespace antdt
