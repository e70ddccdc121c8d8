// The child process that remains of a job daemon's shim after its end.
//
// A private agent learns that its job daemon ended when the shim ends, and then starts the next
// daemon, whose shim starts the agent again if it is gone. Between the two there would be nobody to
// do that, so a child of the ending shim stays until then.
#pragma once

#include <string>

#include "antdtd/shim/successor.h"

namespace antdt::antdtd {

inline constexpr Duration kLingerAtMost = std::chrono::seconds(60);

// Whether the agent has taken note of the end of `process_dir`'s job daemon and gone on: the
// process's directory is gone, and so is the job's, or another job daemon's shim lives in it.
[[nodiscard]] bool was_succeeded(const std::string& process_dir);

// Starts the agent again whenever it is gone, until was_succeeded().
void linger(const std::string& process_dir, const SuccessorOptions& agent);

}  // namespace antdt::antdtd
