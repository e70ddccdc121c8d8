#include "launcher/commands/run/watch_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/os/fs.h"
#include "launcher/commands/operate/elsewhere.h"
#include "launcher/commands/show/run_output.h"
#include "launcher/commands/show/runs.h"
#include "launcher/view/live_view.h"
#include "launcher/view/summary_view.h"

namespace antdt::cli {
namespace {

// As long as a job daemon that stands by may take until it has the job, and more.
constexpr Duration kTakeover = std::chrono::seconds(30);
constexpr Duration kLookElsewhereAgain = std::chrono::milliseconds(500);

}  // namespace

launcher::DetachedPlace place_of(bool detached, const std::string& job) {
  if (!detached) return {};
  return launcher::detached_place(launcher::ask_user_manager(), job);
}

void print_started(const Started& s) {
  if (!s.detached) return fmt::print(talk(s.json), "{} in {}\n", s.job, s.run_dir);
  const std::string& unit = s.place.unit;
  if (!s.place.remark.empty()) fmt::print(stderr, "{}\n", s.place.remark);
  if (s.json) {
    nlohmann::ordered_json out = {{"job", s.job}, {"run_dir", s.run_dir}};
    if (!unit.empty()) out["unit"] = unit;
    return fmt::print("{}\n", out.dump());
  }
  fmt::print(
      "{} runs in {}\n  look:  antdt status {}\n  watch: antdt attach {}\n  end:   antdt stop {}\n",
      s.job, s.run_dir, s.run_dir, s.run_dir, s.run_dir);
  if (!unit.empty()) fmt::print("  unit:  systemctl --user status {}\n", unit);
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

namespace {

// The output of the run's processes from now on, on whichever host they are.
std::function<std::vector<std::string>(bool last)> output_of(const WatchRun& run) {
  if (run.shown_processes == 0) return nullptr;
  auto logs = RunLogs::open(run.run_dir, {}, /*follow=*/true);
  if (!logs) {
    fmt::print(stderr, "the output of the job's processes cannot be shown: {}\n",
               logs.error().message);
    return nullptr;
  }
  const auto kept = std::make_shared<RunLogs>(std::move(*logs));
  const auto output = std::make_shared<RunOutput>(*kept, launcher::LogFilter{}, std::nullopt,
                                                  run.shown_processes > 1);
  return [kept, output](bool last) { return output->read(last); };
}

launcher::WatchOptions options_of(const WatchRun& run) {
  std::FILE* const out = talk(run.json);
  return {
      run.run_dir,      run.control, run.stop_grace,  out,           ::isatty(::fileno(out)) == 1,
      run.signals_stop, run.lent,    operator_name(), output_of(run)};
}

// With the same `options` throughout, so that no line of the processes is shown twice.
Result<int> watch_elsewhere(const WatchRun& run, const launcher::WatchOptions& options) {
  const SteadyClock clock;
  MonoTime seen = clock.now();
  for (;;) {
    if (state_elsewhere(run.run_dir) == RunState::kEnded) {
      return print_summary(run.run_dir, run.json);
    }
    auto job = reach_elsewhere(run.run_dir);
    if (!job && clock.now() - seen > kTakeover) return tl::unexpected<Error>(job.error());
    if (!job) {
      std::this_thread::sleep_for(kLookElsewhereAgain);
      continue;
    }
    fmt::print(talk(run.json), "the job goes on elsewhere; the agent at {} leads to it\n",
               job->through.agent);
    std::fflush(talk(run.json));
    ANTDT_TRY(const launcher::WatchEnd end, launcher::watch(std::move(job->link), options));
    if (end.signal != 0) return 128 + end.signal;
    if (end.has_heard) seen = clock.now();
  }
}

}  // namespace

Result<int> watch_run(transport::Context& context, const WatchRun& run) {
  if (run.lent) run.lent->begun(run.control);
  ANTDT_TRY(launcher::JobLink link, launcher::JobLink::open(context, run.control.jobd_socket));
  const launcher::WatchOptions options = options_of(run);
  const auto end = launcher::watch(std::move(link), options);
  if (!end) {
    if (state_elsewhere(run.run_dir) != RunState::kBrokenOff) return watch_elsewhere(run, options);
    return tl::unexpected<Error>(end.error());
  }
  if (end->signal != 0) return 128 + end->signal;
  launcher::finish_agent(run.control);
  return print_summary(run.run_dir, run.json);
}

Result<int> watch_elsewhere(const WatchRun& run) { return watch_elsewhere(run, options_of(run)); }

}  // namespace antdt::cli
