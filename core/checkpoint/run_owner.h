// Whose a run directory is, on each host that has one at that path.
//
// On the launching host its job.json tells. Where hosts share no disk, the directory of another
// host has no such file: the job's id is the target of the symbolic link checkpoints/.job there. A
// link is made whole or not at all, so nobody reads half of an id.
#pragma once

#include <string>

#include "core/result.h"

namespace antdt {

// kUsage if the directory belongs to a run of another job: then nothing may be written or removed
// there. kIo if that cannot be told now. `where`, for the message: "that host", "hostb".
[[nodiscard]] Status check_run_owner(const std::string& run_dir, const std::string& job,
                                     const std::string& where);

// Makes `run_dir` and its checkpoints/ for the owner alone, unless they are there, and takes them
// for `job`. kUsage as above, kIo if it cannot be made.
[[nodiscard]] Status claim_run_directory(const std::string& run_dir, const std::string& job,
                                         const std::string& where);

}  // namespace antdt
