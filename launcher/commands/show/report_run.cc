// antdt report: writes a run as a page.
#include <fmt/format.h>

#include <memory>

#include "core/os/fs.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/show/runs.h"
#include "report/run_view.h"

namespace antdt::cli {
namespace {

Status report_run(const std::string& name, std::string out) {
  ANTDT_TRY(const std::string run_dir, find_job(name));
  const std::string job = job_id(run_dir);
  ANTDT_TRY(const page::RunView view, read_run_view(run_dir, job));
  if (out.empty()) out = run_dir + "/report.html";
  ANTDT_RETURN_IF_ERROR(write_file_atomic(out, page::html(job, page::run_section(view, 1)), 0644));
  fmt::print("{}\n", out);
  return {};
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  struct Options {
    std::string run;
    std::string out;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "report", "Write a page with each worker's batch and speed over time, and what happened");
  command->add_option("RUN", options->run, kJobHelp)->required();
  command->add_option("--out", options->out, "the page's file (default: report.html in the run)")
      ->type_name("FILE");
  command->callback([options, &exit_code] {
    const auto done = report_run(options->run, options->out);
    if (!done) exit_code = report(done.error());
  });
}

}  // namespace antdt::cli
