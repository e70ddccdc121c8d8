// The times of a step in what a trial's job said of itself while it trained. Pure.
//
// A worker reports together how many samples it has trained and how it spent its own time until
// then. So what lies between two of its reports is exact, whenever they arrive. Samples counted
// against the time on the wall are not: in a trial of a second, reports that are a second old make
// a step a third too long or too short.
#pragma once

#include <vector>

#include "core/report/job_report.h"
#include "launcher/plan/measured.h"

namespace antdt::launcher::plan {

// The trial with its times and its number of steps, from statuses in the order in which they were
// asked for, without the first second of training, in which workers warm up, if there is more.
// 0 steps: not every worker has reported a batch.
[[nodiscard]] Trial timed(Trial trial, const std::vector<report::Status>& seen);

// Whether the time of a step and its error are known, so that the trial may end.
[[nodiscard]] bool saw_enough(const Trial& trial, const std::vector<report::Status>& seen);

}  // namespace antdt::launcher::plan
