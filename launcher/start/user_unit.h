// Where the processes of a job run that nobody watches: in a unit of the user's service manager
// (systemd --user), so that they outlive the session in which the job was started.
//
// It is a scope, which lasts as long as a process of the job lives: the processes of a job start
// one another again (docs/agent.md), and a service would end with the first of them. Without
// lingering, systemd ends the manager, and with it its units, when the user logs out everywhere.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::launcher {

struct UserManager {
  bool is_booted = false;  // systemd is this machine's service manager at all
  bool is_lingering = false;
  std::string user;
  Result<std::string> version;  // as "252.38-1~deb12u1", or why the user's manager does not answer
};
// Asks, for some milliseconds; up to five seconds if the manager does not answer.
[[nodiscard]] UserManager ask_user_manager();

struct DetachedPlace {
  std::string unit;                   // "": the session in which the command was called
  std::vector<std::string> launcher;  // command that starts another in the unit, in its own place
  std::string remark;                 // what the user should know; "": nothing
};
[[nodiscard]] DetachedPlace detached_place(const UserManager& manager, const std::string& job);

}  // namespace antdt::launcher
