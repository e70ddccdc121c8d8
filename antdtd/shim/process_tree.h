// Who descends from whom, read from /proc.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace antdt::antdtd {

// Every living process below `root`, in whatever session or group; zombies are
// not living.
[[nodiscard]] std::vector<pid_t> descendants(pid_t root);

// Sends `signal` to each of them, and to nobody else: a pid that was used again meanwhile is not
// hit. Returns those that were found.
std::vector<pid_t> signal_descendants(pid_t root, int signal);

// SIGKILL to every process whose environment holds all of `marks` ("NAME=value")
// until none is left, at most a few rounds: what a killed shim left behind.
// Processes of other users than the caller's are not seen, or not hit.
void kill_marked(const std::vector<std::string>& marks);

}  // namespace antdt::antdtd
