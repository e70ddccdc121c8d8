// Orders to a job that is reached through an agent, because it is another user's.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>

#include "core/result.h"
#include "core/wire/admin_messages.h"

namespace antdt::cli {

struct ThroughAgent {
  std::string agent;  // HOST:PORT; "": not at all
  std::string keys = "~/.config/antdt";
  [[nodiscard]] bool wanted() const { return !agent.empty(); }
};

void add_agent_options(CLI::App& command, ThroughAgent& through);

// Asked once; what the job daemon or the agent refuses is kRefused.
[[nodiscard]] Status order_through(const ThroughAgent& through, const std::string& job,
                                   const wire::AdminOrder& order);
// Returns once the agent has no such job any more; kUnreachable after `patience`.
[[nodiscard]] Status await_gone(const ThroughAgent& through, const std::string& job,
                                std::chrono::milliseconds patience);
// A table, or JSON, of the jobs that the agent knows.
[[nodiscard]] Status print_jobs_of(const ThroughAgent& through, bool json);

}  // namespace antdt::cli
