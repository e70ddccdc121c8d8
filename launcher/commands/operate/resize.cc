// antdt resize: changes the number of workers, or of parameter servers, while the job runs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/report/states.h"
#include "core/wire/operator_messages.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/operate/running_job.h"
#include "launcher/commands/show/runs.h"
#include "launcher/commands/usage.h"

namespace antdt::cli {

namespace {

struct ResizeOptions {
  std::string job;
  std::uint32_t count = 0;
  std::string role = "worker";
  bool no_wait = false;
  ThroughAgent through;
};

// The members of the group or, if there is none (loose workers), the workers that have joined.
std::uint32_t training(const report::Status& status) {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(status.workers, [&](const report::WorkerStatus& w) {
        return launcher::is_running(w) &&
               (status.generation > 0 ? w.rank.has_value() : state_of(w) == ProcessState::kJoined);
      }));
}

// The number of servers stays the same if the change is given up.
Status await_servers(RunningJob& job, const report::Status& before, std::uint32_t wanted) {
  report::Status after;
  ANTDT_RETURN_IF_ERROR(wait_until(job, [&](const report::Status& status) {
    after = status;
    return status.servers_wanted == 0 && is_settled(status);
  }));
  if (after.servers_count != wanted) {
    return fail(ErrorKind::kRefused,
                "the job keeps its {} servers; {}/events.jsonl says why it does not have {}",
                after.servers_count, job.run_dir, wanted);
  }
  fmt::print("the model is on {} servers, on {} before (generation {})\n", wanted,
             before.servers_count, after.generation);
  return {};
}

Status resize(const ResizeOptions& options) {
  ANTDT_TRY(RunningJob job, reach(options.job, options.through));
  ANTDT_TRY(const report::Status before, await_status(job));
  const wire::ResizedRole role = *by_name<wire::ResizedRole>(options.role);
  ANTDT_RETURN_IF_ERROR(give(job, wire::ResizeJob{options.count, operator_name(), role}));
  if (options.no_wait) {
    fmt::print("the job is to have {} {}s\n", options.count, options.role);
    return {};
  }
  if (role == wire::ResizedRole::kServer) return await_servers(job, before, options.count);
  report::Status after;
  ANTDT_RETURN_IF_ERROR(wait_until(job, [&](const report::Status& status) {
    after = status;
    return training(status) == options.count && is_settled(status);
  }));
  fmt::print("{} workers train, {} before (generation {})\n", options.count, training(before),
             after.generation);
  return {};
}

}  // namespace

void add_resize(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<ResizeOptions>();
  CLI::App* command = app.add_subcommand(
      "resize", "Change how many workers, or parameter servers, a running job has");
  command->add_option("RUN", options->job, kJobHelp)->required();
  command->add_option("N", options->count, "how many")->required()->check(at_least_one());
  command->add_option("--role", options->role, "of which: worker or server")
      ->check(CLI::IsMember({"worker", "server"}))
      ->capture_default_str();
  command->add_flag("--no-wait", options->no_wait, "return when the job daemon has heard it");
  add_agent_options(*command, options->through, help_with_job(""));
  command->callback([options, &exit_code] {
    if (const auto done = resize(*options); !done) exit_code = report(done.error());
  });
}

}  // namespace antdt::cli
