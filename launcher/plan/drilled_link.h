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
// The slowest link that drills make between two domains; empty: none does.
[[nodiscard]] std::optional<Link> drilled_between(const JobConfig& config);
// What a drill makes of a measured link.
[[nodiscard]] Link behind(const Link& drill, Link measured);
// Whether a drill is about messages between some, which servers refuse.
[[nodiscard]] bool drills_pairs(const JobConfig& config);

}  // namespace antdt::launcher::plan
