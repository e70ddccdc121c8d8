// antdt plan: which way of synchronisation a job should use.
#include <fmt/format.h>

#include <memory>

#include "launcher/commands/commands.h"
#include "launcher/commands/plan/make_plan.h"
#include "launcher/plan/plan_view.h"

namespace antdt::cli {
namespace {

struct PlanOptions {
  std::string job;
  std::string from;
  std::vector<std::string> set;
  bool json = false;
};

Result<Planned> planned(const PlanOptions& options) {
  if (options.job.empty() == options.from.empty()) {
    return fail(ErrorKind::kUsage, "name either a job's file or, with --from, a run");
  }
  if (!options.from.empty()) return plan_from_run(options.from);
  transport::Context context;
  return make_plan(context, options.job, options.set,
                   [](const std::string& what) { fmt::print(stderr, "{}\n", what); });
}

Result<int> print_plan(const PlanOptions& options) {
  ANTDT_TRY(const Planned found, planned(options));
  if (options.json) {
    auto json = launcher::plan::plan_json(found.measured, found.plan);
    json["seconds"] = found.seconds;
    fmt::print("{}\n", json.dump(2));
  } else {
    for (const std::string& line : launcher::plan::plan_lines(found.measured, found.plan)) {
      fmt::print("{}\n", line);
    }
    if (options.from.empty()) fmt::print("measured in {:.1f} s\n", found.seconds);
  }
  return found.plan.recommended ? 0 : 1;
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand(
      "plan", "Say what each way of synchronisation would cost a job, and recommend one");
  CLI::Option* job = command->add_option("JOB", options->job, "the job's file, job.toml");
  command
      ->add_option("--from", options->from,
                   "instead of JOB: an ended run, and what its own way cost it")
      ->type_name("RUN")
      ->excludes(job);
  command->add_option("--set", options->set, "KEY=VALUE: change what JOB says; may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] {
    const auto result = print_plan(*options);
    exit_code = result ? *result : report(result.error());
  });
}

}  // namespace antdt::cli
