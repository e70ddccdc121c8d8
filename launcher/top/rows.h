// The workers of all jobs as rows of a table. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/names.h"
#include "core/report/job_report.h"

namespace antdt::launcher::top {

// What was last heard of a job.
struct JobSeen {
  std::string run_dir = {};
  std::string job = {};
  std::optional<report::Status> status = {};  // empty: it has not answered yet
  std::string trouble = {};                   // why it does not answer now; "": it does
};

// Of a host whose agent was asked.
struct HostSeen {
  std::string address = {};
  std::string said = {};  // "5 processes of 2 jobs"
  std::string trouble = {};
};

struct Seen {
  std::vector<JobSeen> jobs;
  std::vector<HostSeen> hosts;
};

enum class Sort : std::uint8_t { kSlow, kCpu, kLost, kName };
constexpr auto names_of(Sort) { return names("slow first", "CPU use", "lost time", "names"); }

struct Row {
  std::string run_dir = {};
  std::string job = {};
  report::WorkerStatus worker = {};
  std::optional<double> lost = {};  // part of its time that it did not compute
  std::string most_lost = {};       // what most of that was
  std::string why = {};             // why it is slow, or does not run
};

// The workers that are not removed. kSlow: stragglers first, the worst one on top, then those that
// do not run; kCpu: who uses most; kLost: who has lost most; kName: by job and number.
[[nodiscard]] std::vector<Row> rows_of(const std::vector<JobSeen>& jobs, Sort sort);

}  // namespace antdt::launcher::top
