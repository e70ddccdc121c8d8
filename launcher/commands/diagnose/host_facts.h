// What a bug report says about the programs and the host.
#pragma once

#include <string>
#include <vector>

namespace antdt::cli {

// The version of this program, what it was compiled with, and the system's.
[[nodiscard]] std::string version_facts(const std::string& antdt_version);

// Processors, memory, limits, control group, and the room on the filesystems of `directories` and
// of shared memory. What cannot be read is named as such.
[[nodiscard]] std::string host_facts(const std::vector<std::string>& directories);

}  // namespace antdt::cli
