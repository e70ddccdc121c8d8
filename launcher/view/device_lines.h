// The GPUs of a job's hosts, for people. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/report/job_report.h"

namespace antdt::launcher {

// For each host with GPUs a heading and a line for each of them: who has it, or why nobody gets it.
[[nodiscard]] std::vector<std::string> device_lines(const std::vector<report::Host>& hosts);

}  // namespace antdt::launcher
