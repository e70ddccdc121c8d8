// What a run leaves that was killed as a whole, the machine's power included:
// the directory of its private agent's sockets, with nobody in it.
//
// A directory is dead when nobody holds the agent's lock and no shim holds its
// pid file (docs/agent.md); whoever is left of a job brings the rest of it back,
// so a dead one stays dead.
#pragma once

#include <string>

#include "core/clock.h"

namespace antdt::launcher {

// The lock that a private agent holds for life.
[[nodiscard]] std::string private_agent_lock(const std::string& socket_dir);

// A shim's successor (a process that holds no lock) brings an agent back within
// this time.
inline constexpr Duration kSurelyDeadAfter = std::chrono::seconds(10);

// Removes `socket_dir` if it is a private agent's, is dead, and was used last
// longer than `age` ago.
void remove_if_dead(const std::string& socket_dir, Duration age);

// The same for every directory below `socket_root`.
void remove_dead(const std::string& socket_root);

}  // namespace antdt::launcher
