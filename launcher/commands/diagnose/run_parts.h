// Reads what a bug report contains of a run.
#pragma once

#include <cstddef>
#include <string>

#include "core/result.h"
#include "launcher/diagnose/bug_report.h"

namespace antdt::cli {

// At most `lines` lines of each log, the newest. Only files that this function names are opened,
// and no links are followed. What cannot be read is in `left_out`.
[[nodiscard]] launcher::ReportSources read_run_parts(const std::string& run_dir, std::size_t lines);

}  // namespace antdt::cli
