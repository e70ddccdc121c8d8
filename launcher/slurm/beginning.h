// How the agents of an allocation begin: when to go on waiting for them, and what is wrong. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"

namespace antdt::launcher {

struct AgentBegins {
  std::string node;
  std::string end_point;
  std::string log;          // what srun and the agent wrote so far
  bool step_ended = false;  // srun has ended
  bool answers = false;
  std::optional<Duration> listened = {};  // for how long the agent has said that it listens
};

// How long srun may take to start an agent, and how long one that listens may take to answer.
inline constexpr Duration kAgentStarts = std::chrono::seconds(60);
inline constexpr Duration kAgentAnswers = std::chrono::seconds(10);

// Whether the agent has written that it listens.
[[nodiscard]] bool says_it_listens(const std::string& log);

// True once all agents answer; false while they are to be waited for. The error (kUnreachable) says
// for each node that is the reason what is wrong and how to mend it. `waited`: since srun was
// called.
[[nodiscard]] Result<bool> have_begun(const std::vector<AgentBegins>& agents, Duration waited);

}  // namespace antdt::launcher
