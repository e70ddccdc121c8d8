// antdt torchrun: a script, started with torchrun's flags and without a job.toml.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>

#include "core/os/runtime_dir.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/run/prepare.h"
#include "launcher/commands/run/run_prepared.h"
#include "launcher/commands/run/torchrun_job.h"
#include "launcher/start/paths.h"

namespace antdt::cli {

namespace {

// Flags of torchrun that AntDT does not need: where workers meet, where their output goes, and how
// often it looks at them; with and without a value.
constexpr const char* kNotNeeded[] = {
    "--rdzv-backend", "--rdzv-endpoint",    "--rdzv-id",    "--rdzv-conf",
    "--master-addr",  "--master-port",      "--local-addr", "--monitor-interval",
    "--start-method", "--log-dir",          "--role",       "--local-ranks-filter",
    "--logs-specs",   "--signals-to-handle"};

struct TorchrunOptions {
  TorchrunFlags flags;
  std::map<std::string, std::string> not_needed;
  // torchrun's: 0, or which of the ranks' streams go to files alone, and which also there. Here all
  // go to files, and are shown unless only the first is asked for.
  std::string redirects = "0", tee = "0";
  std::vector<std::string> set;
  RunHow how;
  bool standalone = false;  // has no effect
  bool dry_run = false;
};

Result<std::string> find_python(const TorchrunFlags& flags) {
  if (flags.no_python) return std::string();
  const char* said = std::getenv("PYTHON_EXEC");  // as torchrun does
  const std::string name = said != nullptr && *said != '\0' ? said : "python3";
  return launcher::find_program(name, "", std::filesystem::current_path());
}

// Each host gets as many workers as were asked for, or the job does not start.
Status check_places(const Prepared& prepared, std::uint32_t each_host) {
  std::map<std::size_t, std::uint32_t> count;
  for (const std::size_t host : prepared.places.workers) ++count[host];
  for (const auto& [host, workers] : count) {
    if (workers == each_host) continue;
    return fail(
        ErrorKind::kUnreachable,
        "{} would get {} workers and not {}, since the hosts have unlike numbers of processors: "
        "write a job.toml with roles.worker.resources (antdt torchrun --dry-run prints one)",
        prepared.hosts[host].name, workers, each_host);
  }
  return {};
}

// Before anything starts. Scripts of other hosts are theirs.
Status check_script(const TorchrunFlags& flags) {
  if (flags.module || flags.no_python || !flags.hosts.empty()) return {};
  const std::string& script = flags.script.front();
  std::error_code error;
  if (std::filesystem::exists(script, error)) return {};
  return fail(ErrorKind::kUsage, "there is no script {} in {}", script,
              std::filesystem::current_path().string());
}

Result<int> torchrun(TorchrunOptions& options, std::vector<std::string> script) {
  options.flags.script = std::move(script);
  for (const auto& [names, value] : options.not_needed) {
    if (!value.empty()) options.flags.not_needed.push_back(names.substr(names.find("--")));
  }
  ANTDT_TRY(const std::string python, find_python(options.flags));
  ANTDT_TRY(const TorchrunJob job,
            torchrun_job(options.flags, python, std::thread::hardware_concurrency()));
  for (const std::string& note : job.notes) fmt::print(stderr, "antdt torchrun: {}\n", note);
  ANTDT_RETURN_IF_ERROR(check_script(options.flags));
  if (options.dry_run) {
    fmt::print("{}", job.job_toml);
    return 0;
  }
  options.how.shows_output = options.redirects == "0" || options.tee != "0";
  transport::Context context;
  const std::string here = std::filesystem::current_path() / "job.toml";
  ANTDT_TRY(const Prepared prepared,
            prepare_text(context, job.job_toml, here, options.set, options.how.run));
  if (!options.flags.hosts.empty()) ANTDT_RETURN_IF_ERROR(check_places(prepared, job.each_host));
  return run_prepared(context, prepared, options.how);
}

}  // namespace

void add_torchrun(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<TorchrunOptions>();
  CLI::App* command =
      app.add_subcommand("torchrun", "Run a PyTorch script with torchrun's flags, and watch it");
  TorchrunFlags& flags = options->flags;
  command->prefix_command();
  command->footer(
      "SCRIPT [ARGUMENT ...] follows the options: a Python file, a module's name with -m, or a "
      "program\nwith --no-python, and its arguments");
  command
      ->add_option("--nproc-per-node", flags.nproc_per_node,
                   "workers on each host: a number, \"cpu\" or \"auto\"")
      ->type_name("N");
  command
      ->add_option("--hosts", flags.hosts,
                   "the hosts, H1,H2,…, whose agents run the workers; else this machine")
      ->type_name("HOSTS")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--nnodes", flags.nnodes, "hosts; must fit --hosts")->type_name("N");
  command->add_option("--node-rank", flags.node_rank, "0; this command runs once")->type_name("N");
  command
      ->add_option("--max-restarts", flags.max_restarts,
                   "how often all workers are started again after a failure")
      ->type_name("N");
  command->add_flag("-m,--module", flags.module, "the script is a module's name");
  command->add_flag("--no-python", flags.no_python, "the script is a program");
  command->add_flag("--standalone", options->standalone, "accepted; has no effect");
  for (const char* names : kNotNeeded) {
    command->add_option(names, options->not_needed[names], "accepted, and not needed")
        ->type_name("X");
  }
  command
      ->add_option("-r,--redirects", options->redirects,
                   "other than 0: the ranks' output goes to RUN/logs alone, and is not shown")
      ->type_name("X");
  command
      ->add_option("-t,--tee", options->tee, "other than 0: show the output even with --redirects")
      ->type_name("X");
  command->add_option("--set", options->set, "KEY=VALUE of job.toml; may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--run-dir", options->how.run.run_dir, "directory of this run")
      ->type_name("DIR");
  command->add_flag("--json", options->how.json, "print only JSON to standard output");
  command->add_flag("--detach", options->how.detach, "return when the job runs");
  command->add_flag("--dry-run", options->dry_run, "print the job.toml, start nothing");
  command->callback([options, command, &exit_code] {
    const auto result = torchrun(*options, command->remaining());
    exit_code = result ? *result : report(result.error());
  });
}

}  // namespace antdt::cli
