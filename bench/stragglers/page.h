// The comparison as a page: the table, and the plots of each situation and each run. Pure.
#pragma once

#include <string>
#include <vector>

#include "bench/stragglers/result.h"
#include "report/page.h"

namespace antdt::stragglers {

// `command`: the command line that made it; `runs`: the views of the lines' median runs.
[[nodiscard]] std::string comparison_page(const std::vector<Line>& lines,
                                          const std::string& command,
                                          const std::vector<page::RunView>& runs);

}  // namespace antdt::stragglers
