// The comparison as a page: the table, each situation's plots, and each run's. Pure.
#pragma once

#include <string>
#include <vector>

#include "bench/stragglers/result.h"
#include "report/page.h"

namespace antdt::stragglers {

// `command`: how it was made; `runs`: of the lines' middle runs, what each shows.
[[nodiscard]] std::string comparison_page(const std::vector<Line>& lines,
                                          const std::string& command,
                                          const std::vector<page::RunView>& runs);

}  // namespace antdt::stragglers
