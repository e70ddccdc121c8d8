// antdt approve: carries out an action that was only advised.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/wire/operator_messages.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/operate/running_job.h"
#include "launcher/commands/show/runs.h"
#include "launcher/commands/usage.h"

namespace antdt::cli {

namespace {

struct ApproveOptions {
  std::string job;
  std::uint32_t number = 0;
  ThroughAgent through;
};

Status approve(const ApproveOptions& options) {
  ANTDT_TRY(RunningJob job, reach(options.job, options.through));
  ANTDT_TRY(const report::Status status, await_status(job));
  ANTDT_RETURN_IF_ERROR(give(job, wire::ApproveAction{options.number, operator_name()}));
  const auto action = std::ranges::find(status.actions, options.number, &report::Action::number);
  if (action == status.actions.end()) return {};
  fmt::print("{}{}{} is done: {}\n", action->kind, action->target.empty() ? "" : " of ",
             action->target, action->reason);
  return {};
}

}  // namespace

void add_approve(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<ApproveOptions>();
  CLI::App* command = app.add_subcommand("approve", "Do an action that a running job advises");
  command->add_option("RUN", options->job, kJobHelp)->required();
  command->add_option("ACTION", options->number, "its number, from antdt status or explain")
      ->required()
      ->check(at_least_one());
  add_agent_options(*command, options->through, help_with_job(""));
  command->callback([options, &exit_code] {
    if (const auto done = approve(*options); !done) exit_code = report(done.error());
  });
}

}  // namespace antdt::cli
