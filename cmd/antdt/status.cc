// antdt status: a run as it is now, or as it ended.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "cmd/antdt/commands.h"
#include "core/transport/socket.h"
#include "launcher/job_link.h"
#include "launcher/run_directory.h"
#include "launcher/status_view.h"
#include "launcher/summary_view.h"

namespace antdt::cli {

namespace {

void print_lines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) fmt::print("{}\n", line);
}

Status print_ended(const std::string& run_dir, bool json) {
  ANTDT_TRY(const launcher::Summary summary, launcher::read_summary(run_dir));
  if (json) {
    fmt::print("{}", summary.json);
    return {};
  }
  print_lines(summary.lines);
  print_lines(launcher::closing_lines(summary, run_dir));
  return {};
}

Status print_running(const std::string& run_dir, bool json) {
  ANTDT_TRY(const launcher::RunControl control, launcher::read_control(run_dir));
  transport::Context context;
  ANTDT_TRY(launcher::JobLink link, launcher::JobLink::open(context, control.jobd_socket));
  const auto answer = link.status(0, std::chrono::seconds(3));
  if (!answer) {
    return fail(ErrorKind::kUnreachable,
                "the job daemon of {} does not answer ({}); see {}/agent.log and {}/logs", run_dir,
                answer.error().message, run_dir, run_dir);
  }
  if (json) {
    fmt::print("{}\n", answer->status_json);
    return {};
  }
  ANTDT_TRY(const launcher::StatusView status, launcher::parse_status(answer->status_json));
  print_lines(launcher::status_table(status));
  for (const std::string& text : answer->events) {
    const auto event = launcher::parse_event(text);
    if (event && launcher::is_notable(*event)) fmt::print("{}\n", launcher::event_line(*event));
  }
  return {};
}

Status print_status(const std::string& run, bool json) {
  ANTDT_TRY(const std::string run_dir, launcher::find_run(run));
  // A job daemon that is there writes its summary last.
  const bool ended = ::access((run_dir + "/summary.json").c_str(), F_OK) == 0 &&
                     !FileLock::owner(run_dir + "/jobd.lock");
  return ended ? print_ended(run_dir, json) : print_running(run_dir, json);
}

}  // namespace

void add_status(CLI::App& app, int& exit_code) {
  struct Options {
    std::string run;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("status", "Show how a run is, or how it ended");
  command->add_option("RUN", options->run, "run directory, or job id below runs/")->required();
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] {
    if (const auto done = print_status(options->run, options->json); !done) {
      exit_code = report(done.error());
    }
  });
}

}  // namespace antdt::cli
