// Prints findings: for people, and as JSON.
#pragma once

#include <string>
#include <vector>

#include "launcher/doctor/facts.h"
#include "launcher/doctor/finding.h"

namespace antdt::launcher {

// The worst first; what is well in one line each. `colour`: for a terminal.
[[nodiscard]] std::vector<std::string> finding_lines(const Findings& findings, bool colour);
// The links as a matrix of bandwidths, and one of round trips; of more than 12 hosts, one row for
// each with its worst links. Empty without links.
[[nodiscard]] std::vector<std::string> link_lines(const Facts& facts);
// "2 errors, 1 warning, 3 notes; 24 checks well"
[[nodiscard]] std::string count_line(const Findings& findings);
[[nodiscard]] std::string findings_json(const Facts& facts, const Findings& findings);

[[nodiscard]] bool has(const Findings& findings, Level level);

}  // namespace antdt::launcher
