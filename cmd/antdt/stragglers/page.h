// The comparison as a page: the table, each situation's plots, and each run's. Pure.
#pragma once

#include <string>
#include <vector>

#include "cmd/antdt/page/page.h"
#include "cmd/antdt/stragglers/result.h"

namespace antdt::stragglers {

// `command`: how it was made; `runs`: of the lines' middle runs, what each shows.
[[nodiscard]] std::string comparison_page(const std::vector<Line>& lines,
                                          const std::string& command,
                                          const std::vector<page::RunView>& runs);

}  // namespace antdt::stragglers
