// The report of a job as it is now, from all that its parts know.
#pragma once

#include <cstdint>

#include "ctl/job/report.h"

namespace antdt::ctl::job {

struct Parts;

[[nodiscard]] JobReport report_of(const Parts& parts);

// To train in the whole job, and trained so far.
[[nodiscard]] std::uint64_t samples_total(const Parts& parts);
[[nodiscard]] std::uint64_t samples_done(const Parts& parts);

}  // namespace antdt::ctl::job
