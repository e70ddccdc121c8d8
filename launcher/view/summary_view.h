// RUN/summary.json as what people read at the end of a run. Pure but for the
// reading of the file.
#pragma once

#include <string>
#include <vector>

#include "core/report/job_report.h"
#include "core/result.h"

namespace antdt::launcher {

// kCorrupt, with the field, when it is not what a job daemon writes.
[[nodiscard]] Result<report::Summary> parse_summary(const std::string& json);
[[nodiscard]] Result<report::Summary> read_summary(const std::string& run_dir);

// The workers of an ended run, with what a status says of them and a summary too.
[[nodiscard]] std::vector<report::WorkerStatus> workers_of(const report::Summary& summary);

// Quality, speed, where the time went, actions, accounts.
[[nodiscard]] std::vector<std::string> summary_lines(const report::Summary& summary);
// What a failed or stopped run says last; nothing for one that is done.
[[nodiscard]] std::vector<std::string> closing_lines(const report::Summary& summary,
                                                     const std::string& run_dir);

}  // namespace antdt::launcher
