#include "launcher/commands/run/watch_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/os/fs.h"
#include "launcher/commands/show/runs.h"
#include "launcher/view/live_view.h"
#include "launcher/view/summary_view.h"

namespace antdt::cli {

void print_started(const Started& s) {
  if (!s.detached) return fmt::print(talk(s.json), "{} in {}\n", s.job, s.run_dir);
  if (s.json) {
    const nlohmann::ordered_json out = {{"job", s.job}, {"run_dir", s.run_dir}};
    return fmt::print("{}\n", out.dump());
  }
  fmt::print(
      "{} runs in {}\n  look:  antdt status {}\n  watch: antdt attach {}\n  end:   antdt stop {}\n",
      s.job, s.run_dir, s.run_dir, s.run_dir, s.run_dir);
}

Result<int> print_summary(const std::string& run_dir, bool json) {
  ANTDT_TRY(const report::Summary summary, launcher::read_summary(run_dir));
  if (json) {
    ANTDT_TRY(const std::string text, read_file(run_dir + "/summary.json"));
    fmt::print("{}", text);
  } else {
    for (const std::string& line : launcher::summary_lines(summary)) fmt::print("{}\n", line);
  }
  std::fflush(stdout);
  for (const std::string& line : launcher::closing_lines(summary, run_dir)) {
    fmt::print(stderr, "{}\n", line);
  }
  return static_cast<int>(summary.exit.code);
}

Result<int> watch_run(transport::Context& context, const WatchRun& run) {
  std::FILE* const out = talk(run.json);
  const auto end =
      launcher::watch(context, {run.run_dir, run.control, run.stop_grace, out,
                                ::isatty(::fileno(out)) == 1, run.signals_stop, operator_name()});
  if (!end) {
    ANTDT_RETURN_IF_ERROR(check_not_elsewhere(run.run_dir));
    return tl::unexpected<Error>(end.error());
  }
  if (end->signal != 0) return 128 + end->signal;
  launcher::finish_agent(run.control);
  return print_summary(run.run_dir, run.json);
}

}  // namespace antdt::cli
