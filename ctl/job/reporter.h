// Makes the report of a job as it is now, from all of its parts.
#pragma once

#include <cstdint>

#include "ctl/job/report.h"

namespace antdt::ctl::job {

struct Parts;

[[nodiscard]] JobReport report_of(const Parts& parts);

// Samples to train in the whole job, and samples trained so far.
[[nodiscard]] std::uint64_t samples_total(const Parts& parts);
[[nodiscard]] std::uint64_t samples_done(const Parts& parts);

}  // namespace antdt::ctl::job
