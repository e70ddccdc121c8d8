// "Did you mean ...?"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace antdt::launcher {

// The candidate that is nearest to the written text (by edits and swapped neighbours, or by its
// beginning), or "" if none is near enough to be meant.
[[nodiscard]] std::string nearest(std::string_view written,
                                  const std::vector<std::string>& candidates);

}  // namespace antdt::launcher
