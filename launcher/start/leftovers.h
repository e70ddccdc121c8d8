// What remains of a run whose processes were all killed, for example by a power failure: the socket
// directory of its private agent.
//
// A directory is dead if no process holds the agent's lock and no shim holds its pid file
// (docs/agent.md). As long as any of these processes is left, it brings the others back, so a dead
// directory stays dead.
#pragma once

#include <string>

#include "core/clock.h"

namespace antdt::launcher {

// The lock that a private agent holds for life.
[[nodiscard]] std::string private_agent_lock(const std::string& socket_dir);

// A shim's successor, which holds no lock, brings an agent back within this time.
inline constexpr Duration kSurelyDeadAfter = std::chrono::seconds(10);

// Removes `socket_dir` if it belongs to a private agent, is dead, and was last used longer than
// `age` ago.
void remove_if_dead(const std::string& socket_dir, Duration age);

// The same for every directory below `socket_root`.
void remove_dead(const std::string& socket_root);

}  // namespace antdt::launcher
