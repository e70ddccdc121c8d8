// What an agent knows of the jobs on its host, and its drain. Requests to a job daemon go through
// an agent by running_job.h.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "core/result.h"
#include "core/wire/admin_messages.h"

namespace antdt::cli {

struct ThroughAgent {
  std::string agent;  // HOST or HOST:PORT; "": not through an agent
  std::string keys = "~/.config/antdt";
  [[nodiscard]] bool wanted() const { return !agent.empty(); }
};

// The options that lead a command there, for people: " --agent n1"; "": none do.
[[nodiscard]] std::string options_for(const ThroughAgent& through);

// --agent, with what it does for this command, and --keys.
void add_agent_options(CLI::App& command, ThroughAgent& through, const std::string& help);
// The help of a command with a JOB; `others`: what members of antdt-admin may do to the job of
// another user, "": nothing.
[[nodiscard]] std::string help_with_job(const std::string& others);

// Whether the agent has the job, and the job has not ended: its daemon is connected, or its
// processes run there.
[[nodiscard]] Result<bool> is_there(const ThroughAgent& through, const std::string& job);
// Whether nothing of the job is left there, not even the last processes of a job that has ended.
[[nodiscard]] Result<bool> has_left(const ThroughAgent& through, const std::string& job);
// Drains the agent's host, or ends that, and returns what the agent says of its host afterwards.
[[nodiscard]] Result<wire::JobsReply> drain_through(const ThroughAgent& through,
                                                    const wire::DrainHost& order);
// Prints a table, or JSON, of the jobs that the agent knows.
[[nodiscard]] Status print_jobs_of(const ThroughAgent& through, bool json);

}  // namespace antdt::cli
