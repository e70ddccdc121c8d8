// antdt drain, antdt undrain: whether a host takes processes, of all jobs.
#include <fmt/format.h>

#include <memory>

#include "launcher/commands/commands.h"
#include "launcher/commands/operate/through_agent.h"
#include "launcher/view/text_table.h"

namespace antdt::cli {
namespace {

struct DrainOptions {
  std::string host;
  std::string reason;
  ThroughAgent through;
};

void print_processes(const wire::JobsReply& here) {
  std::vector<std::vector<std::string>> cells;
  for (const wire::JobHere& job : here.jobs) {
    if (job.processes > 0) cells.push_back({job.job, job.user, std::to_string(job.processes)});
  }
  if (cells.empty()) {
    fmt::print("nothing runs there\n");
    return;
  }
  for (const std::string& line : launcher::text_table({"job", "user", "processes#"}, cells)) {
    fmt::print("{}\n", line);
  }
}

Status drain(DrainOptions options, bool drained) {
  options.through.agent = options.host;
  ANTDT_TRY(const wire::JobsReply here,
            drain_through(options.through, wire::DrainHost{drained, options.reason}));
  if (!drained) {
    fmt::print("{} takes processes again\n", options.host);
    return {};
  }
  fmt::print("{} is drained {}: it starts no process of any job until antdt undrain {}\n",
             options.host, here.drain ? wire::to_text(*here.drain) : "", options.host);
  print_processes(here);
  return {};
}

void add(CLI::App& app, int& exit_code, const char* name, const char* help, bool drained) {
  const auto options = std::make_shared<DrainOptions>();
  CLI::App* command = app.add_subcommand(name, help);
  command
      ->add_option("HOST", options->host,
                   "the host of an agent, as HOST or HOST:PORT (default port 7700)")
      ->required();
  if (drained) command->add_option("--reason", options->reason, "why, for all who ask");
  command->add_option("--keys", options->through.keys, "your keys, as cluster.keys")
      ->type_name("DIR")
      ->capture_default_str();
  command->callback([options, drained, &exit_code] {
    if (const auto done = drain(*options, drained); !done) exit_code = report(done.error());
  });
}

}  // namespace

void add_drain(CLI::App& app, int& exit_code) {
  add(app, exit_code, "drain", "Start nothing more on a host, and move its workers elsewhere",
      true);
  add(app, exit_code, "undrain", "Let a drained host take processes again", false);
}

}  // namespace antdt::cli
