#include "launcher/commands/operate/through_agent.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/clock.h"
#include "launcher/start/admin_link.h"
#include "launcher/start/paths.h"
#include "launcher/view/text_table.h"

namespace antdt::cli {
namespace {

constexpr Duration kAgentAnswers = std::chrono::seconds(5);

Result<launcher::AdminLink> open_link(transport::Context& context, const ThroughAgent& through) {
  return launcher::AdminLink::open(context, through.agent,
                                   launcher::absolute_path(through.keys, "."));
}

}  // namespace

std::string options_for(const ThroughAgent& through) {
  if (!through.wanted()) return "";
  const bool usual = through.keys == ThroughAgent().keys;
  return fmt::format(" --agent {}{}", through.agent, usual ? "" : " --keys " + through.keys);
}

std::string help_with_job(const std::string& others) {
  return fmt::format("ask through this agent (default port 7700), where RUN is a job's id{}{}",
                     others.empty() ? "" : "; members of antdt-admin may ", others);
}

void add_agent_options(CLI::App& command, ThroughAgent& through, const std::string& help) {
  command.add_option("--agent", through.agent, help)->type_name("HOST:PORT");
  command.add_option("--keys", through.keys, "with --agent: your keys, as cluster.keys")
      ->type_name("DIR")
      ->capture_default_str();
}

namespace {

// What the agent says of the job; empty: nothing.
Result<std::optional<wire::JobHere>> told_of(const ThroughAgent& through, const std::string& job) {
  transport::Context context;
  ANTDT_TRY(launcher::AdminLink link, open_link(context, through));
  ANTDT_TRY(const auto here, link.jobs(kAgentAnswers));
  const auto found = std::ranges::find(here.jobs, job, &wire::JobHere::job);
  return found == here.jobs.end() ? std::nullopt : std::optional(*found);
}

std::string_view daemon_of(const wire::JobHere& job) {
  if (job.over) return "has ended";
  return job.attached ? "connected" : "its daemon is away";
}

}  // namespace

Result<bool> is_there(const ThroughAgent& through, const std::string& job) {
  ANTDT_TRY(const auto told, told_of(through, job));
  return told && !told->over;
}

Result<bool> has_left(const ThroughAgent& through, const std::string& job) {
  ANTDT_TRY(const auto told, told_of(through, job));
  return !told;
}

Status print_jobs_of(const ThroughAgent& through, bool json) {
  transport::Context context;
  ANTDT_TRY(launcher::AdminLink link, open_link(context, through));
  ANTDT_TRY(const auto here, link.jobs(kAgentAnswers));
  if (json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const wire::JobHere& job : here.jobs) {
      out.push_back({{"job", job.job},
                     {"user", job.user},
                     {"processes", job.processes},
                     {"attached", job.attached},
                     {"over", job.over}});
    }
    fmt::print("{}\n", out.dump(2));
    return {};
  }
  std::vector<std::vector<std::string>> cells;
  for (const wire::JobHere& job : here.jobs) {
    cells.push_back(
        {job.job, job.user, std::to_string(job.processes), std::string(daemon_of(job))});
  }
  for (const std::string& line :
       launcher::text_table({"job", "user", "processes#", "daemon"}, cells)) {
    fmt::print("{}\n", line);
  }
  if (here.drain) fmt::print("the host is drained {}\n", wire::to_text(*here.drain));
  return {};
}

Result<wire::JobsReply> drain_through(const ThroughAgent& through, const wire::DrainHost& order) {
  transport::Context context;
  ANTDT_TRY(launcher::AdminLink link, open_link(context, through));
  ANTDT_RETURN_IF_ERROR(link.drain(order, kAgentAnswers));
  return link.jobs(kAgentAnswers);
}

}  // namespace antdt::cli
