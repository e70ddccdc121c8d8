// From the flags of antdtd to what an Agent is made from: every check that can
// fail before anything runs, each with a message that says how to mend it.
#pragma once

#include <cstdint>
#include <string>

#include "antdtd/agent/agent.h"
#include "core/loop.h"
#include "core/transport/socket.h"

namespace antdt::antdtd {

struct AgentFlags {
  std::string listen;  // host:port; or:
  bool is_private = false;
  std::string keys;        // directory with agent.key and authorized/
  std::string socket_dir;  // "": below the runtime directory
  std::string state_dir;   // "": where the system keeps states
  std::string host_name;
  std::string interface;
  std::string address;
  double cpus = 0;  // 0: as probed
  std::uint64_t memory_bytes = 0;
  bool allow_root = false;
  std::string log_file;
  double idle_exit_seconds = 60;
  double orphan_timeout_seconds = 60;
  std::string cgroup;         // where workers get cgroups; "": its own if it may; "none"
  bool limit_cpus = false;    // workers get no more CPU than they lease
  bool no_successor = false;  // private: the shims do not start the agent again
};

// Flags with every default filled in, or kUsage.
[[nodiscard]] Result<AgentFlags> complete(AgentFlags flags);

struct Opened {
  AgentParts parts;
  AgentOptions options;
  std::string listening;  // end point, for people
};
// Binds the sockets, takes the state directory, finds antdt-shim beside this
// program. `flags` are complete.
[[nodiscard]] Result<Opened> open_agent(EventLoop& loop, transport::Context& context,
                                        const AgentFlags& flags);

// Removes what a private agent that has finished leaves: its directories, if
// nothing else is in them.
void remove_traces(const AgentFlags& flags);

}  // namespace antdt::antdtd
