// Shows RUN/summary.json at the end of a run. Pure, except for reading the file.
#pragma once

#include <string>
#include <vector>

#include "core/report/job_report.h"
#include "core/result.h"

namespace antdt::launcher {

// The error (kCorrupt) names the field that a job daemon would not write.
[[nodiscard]] Result<report::Summary> parse_summary(const std::string& json);
[[nodiscard]] Result<report::Summary> read_summary(const std::string& run_dir);

// The workers of an ended run, with the fields that a status and a summary share.
[[nodiscard]] std::vector<report::WorkerStatus> workers_of(const report::Summary& summary);

// Quality, speed, time account, actions, accounts.
[[nodiscard]] std::vector<std::string> summary_lines(const report::Summary& summary);
// The last lines about a failed or stopped run; empty if it is done.
[[nodiscard]] std::vector<std::string> closing_lines(const report::Summary& summary,
                                                     const std::string& run_dir);

}  // namespace antdt::launcher
