// Which process descends from which, read from /proc.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace antdt::antdtd {

// Every living process below `root`, in whatever session or group. Zombies do not count as living.
[[nodiscard]] std::vector<pid_t> descendants(pid_t root);

// Sends `signal` to each of them, and to no other process: a pid that was reused meanwhile is not
// signalled. Returns the processes that were found.
std::vector<pid_t> signal_descendants(pid_t root, int signal);

// Sends SIGKILL to every process whose environment contains all of `marks` ("NAME=value"), in a few
// rounds until none is left. These are the processes that a killed shim left behind. Processes of
// other users than the caller's are not seen, or not signalled.
void kill_marked(const std::vector<std::string>& marks);

}  // namespace antdt::antdtd
