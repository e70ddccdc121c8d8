// "Did you mean ...?"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace antdt::launcher {

// The candidate nearest to what was written (by edits and swapped neighbours, or as its beginning),
// or
// "" when none is near enough to be what was meant.
[[nodiscard]] std::string nearest(std::string_view written,
                                  const std::vector<std::string>& candidates);

}  // namespace antdt::launcher
