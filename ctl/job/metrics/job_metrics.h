// A job's metrics. Pure functions from values to values.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/metrics/metric.h"
#include "ctl/job/metrics/past_counts.h"
#include "ctl/job/report.h"

namespace antdt::ctl {

// What the job's report does not contain.
struct DaemonCounts {
  std::string version = {};                          // of AntDT
  std::map<std::string, std::uint64_t> events = {};  // by kind, since this daemon was started
  metrics::Histogram journal_commits;                // seconds
};

// Upper bounds of the times of a commit, in seconds.
[[nodiscard]] metrics::Histogram commit_times();

// Every sample has the label `antdt_job`, the job's id.
[[nodiscard]] metrics::Families job_metrics(const JobReport& report, const PastCounts& past,
                                            const DaemonCounts& daemon);

}  // namespace antdt::ctl
