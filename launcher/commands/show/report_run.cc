// antdt report: writes a run as a page, or its bill and what it could have been as JSON.
#include <fmt/format.h>

#include <memory>

#include "core/os/fs.h"
#include "core/report/json.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/show/runs.h"
#include "launcher/commands/simulate/what_if.h"
#include "report/run_view.h"

namespace antdt::cli {
namespace {

struct ReportOptions {
  std::string run;
  std::string out;  // empty: report.html in the run
  bool json = false;
};

// A report of a larger run would take long: about 50 us for each worker and second, and
// alternative.
constexpr double kMostWorkerSeconds = 100'000;

// What the run could have been. The error says why that cannot be simulated, or is not simulated
// here.
Result<WhatIf> what_if_of(const std::string& run_dir) {
  ANTDT_TRY(const RecordedRun run, load_recorded(run_dir));
  if (run.speeds.seconds() * static_cast<double>(run.workers.size()) > kMostWorkerSeconds) {
    return fail(ErrorKind::kUsage,
                "to play what a run of this size could have been takes a while: antdt replay {}",
                job_id(run_dir));
  }
  return play_alternatives(run);
}

Status print_as_json(const std::string& run_dir) {
  ANTDT_TRY(const auto bill, read_bill(run_dir));
  report::Json json = {{"job", job_id(run_dir)}, {"bill", nullptr}, {"what_if", nullptr}};
  if (bill) json["bill"] = report::json_of(*bill);
  if (bill) {
    const auto what_if = what_if_of(run_dir);
    if (what_if) {
      json["what_if"] =
          report::Json::parse(fleet::to_json(what_if->alternatives, what_if->recommended));
    }
  }
  fmt::print("{}\n", report::to_text(json, 2));
  return {};
}

Status report_run(const ReportOptions& options) {
  ANTDT_TRY(const std::string run_dir, find_job(options.run));
  if (options.json) return print_as_json(run_dir);
  const std::string job = job_id(run_dir);
  ANTDT_TRY(page::RunView view, read_run_view(run_dir, job));
  if (!view.bill.rows.empty()) {
    const auto what_if = what_if_of(run_dir);
    if (what_if) {
      view.what_if = view_of(*what_if);
    } else {
      view.what_if.below = {what_if.error().message};
    }
  }
  const std::string out = options.out.empty() ? run_dir + "/report.html" : options.out;
  ANTDT_RETURN_IF_ERROR(write_file_atomic(out, page::html(job, page::run_section(view, 1)), 0644));
  fmt::print("{}\n", out);
  return {};
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* command =
      app.add_subcommand("report", "Write a page: speeds, events, where time was lost");
  command->add_option("RUN", options->run, kJobHelp)->required();
  CLI::Option* out =
      command
          ->add_option("--out", options->out, "the page's file (default: report.html in the run)")
          ->type_name("FILE");
  command
      ->add_flag("--json", options->json,
                 "write no page; print as JSON where the workers' time went, and what would have "
                 "saved it")
      ->excludes(out);
  command->callback([options, &exit_code] {
    const auto done = report_run(*options);
    if (!done) exit_code = report(done.error());
  });
}

}  // namespace antdt::cli
