// What drills of job.toml ([[inject]]) make of a job's links. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/config/job_config.h"
#include "launcher/plan/measured.h"

namespace antdt::launcher::plan {

// The link that drills make of the links of all workers; empty: none does. `notes` gets a sentence
// if the plan leaves drills out.
[[nodiscard]] std::optional<Link> drilled_link(const JobConfig& config,
                                               std::vector<std::string>& notes);

}  // namespace antdt::launcher::plan
