// Which data are pinned to which domain (data.pin, and the data of each [[domain]]), and the rules
// of these keys that the schema cannot express. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/domain/pinned_data.h"
#include "launcher/config/job_config.h"
#include "launcher/config/problems.h"

namespace antdt::launcher {

void check_pins(const JobConfig& config, Problems& problems);

// Why ways of synchronisation cannot be tried for this job (antdt plan, trainer.sync = "auto"), and
// what to do. "": its data are not pinned.
[[nodiscard]] std::string why_pins_are_not_planned(const JobConfig& config);

// Called with a key and a sentence about it.
using PinProblem = std::function<void(const std::string& key, const std::string& text)>;

// The consecutive files, or ranges of records, of each domain, in the order of records; without
// those of described domains. The records of files are not counted yet. What is in no domain, or in
// several, is a problem.
[[nodiscard]] std::vector<PinnedPart> pinned_parts(const JobConfig& config,
                                                   const PinProblem& problem);

// What is wrong with workers that are on these hosts (by name; w0 first): a domain whose data
// nobody could train, or a worker that would be given nothing. "": nothing.
[[nodiscard]] std::string unfit_for_pins(const JobConfig& config,
                                         const std::vector<std::string>& hosts_of_workers);

}  // namespace antdt::launcher
