// antdt: the program for users.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/os/process.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/output.h"
#include "launcher/commands/usage.h"

int main(int argc, char** argv) {
  antdt::ignore_sigpipe();
  antdt::raise_open_files_limit();
  CLI::App app(
      "Train one model on many machines of unequal and changing speed.\n"
      "See antdt(1) and job.toml(5).");
  app.name("antdt");
  app.set_version_flag("--version", "antdt " ANTDT_VERSION);
  app.set_help_flag("-h,--help", "print this and leave");
  app.require_subcommand(1);
  int exit_code = 0;
  antdt::cli::add_run(app, exit_code);
  antdt::cli::add_torchrun(app, exit_code);
  antdt::cli::add_attach(app, exit_code);
  antdt::cli::add_status(app, exit_code);
  antdt::cli::add_top(app, exit_code);
  antdt::cli::add_jobs(app, exit_code);
  antdt::cli::add_explain(app, exit_code);
  antdt::cli::add_logs(app, exit_code);
  antdt::cli::add_doctor(app, exit_code);
  antdt::cli::add_evict(app, exit_code);
  antdt::cli::add_drain(app, exit_code);
  antdt::cli::add_resize(app, exit_code);
  antdt::cli::add_inject(app, exit_code);
  antdt::cli::add_approve(app, exit_code);
  antdt::cli::add_stop(app, exit_code);
  antdt::cli::add_data(app, exit_code);
  antdt::cli::add_model(app, exit_code);
  antdt::cli::add_report(app, exit_code);
  antdt::cli::add_diagnose(app, exit_code);
  antdt::cli::add_simulate(app, exit_code);
  antdt::cli::add_plan(app, exit_code);
  antdt::cli::add_replay(app, exit_code);
  antdt::cli::add_bench(app, exit_code);
  antdt::cli::add_keygen(app, exit_code);
  try {
    std::vector<std::string> words = antdt::cli::with_dashes({argv + 1, argv + argc});
    std::ranges::reverse(words);  // as CLI11 takes them
    app.parse(std::move(words));
  } catch (const CLI::ParseError& e) {
    app.failure_message([&](const CLI::App* of, const CLI::Error& error) {
      return antdt::cli::usage_error(*of, error, argc, argv);
    });
    return antdt::cli::finish_output(app.exit(e) == 0 ? 0 : 2);
  } catch (const std::system_error&) {
    if (std::ferror(stdout) == 0) throw;  // else fmt::print could not write
  }
  return antdt::cli::finish_output(exit_code);
}
