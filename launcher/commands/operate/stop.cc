// antdt stop: the job writes a checkpoint and ends; the run can be resumed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/report/states.h"
#include "core/schema/units.h"
#include "core/wire/operator_messages.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/operate/elsewhere.h"
#include "launcher/commands/operate/running_job.h"
#include "launcher/commands/show/runs.h"
#include "launcher/view/summary_view.h"

namespace antdt::cli {

namespace {

struct StopOptions {
  std::string job;
  std::string grace;
  std::string reason;
  bool no_wait = false;
  ThroughAgent through;
};

// After its grace the job kills its workers, and then waits for their ends.
constexpr Duration kAfterGrace = std::chrono::seconds(20);
constexpr Duration kLookEvery = std::chrono::milliseconds(50);
constexpr Duration kLookElsewhereEvery = std::chrono::milliseconds(500);
constexpr Duration kTellEvery = std::chrono::seconds(5);
// The private agent of a job all of whose processes were killed may be started again.
constexpr Duration kMayComeBack = std::chrono::seconds(10);
constexpr std::string_view kWrites = "writing the checkpoint";
// How long to wait for the end of a job whose own grace is not known.
constexpr std::chrono::milliseconds kGraceOfAnother = std::chrono::minutes(2);

// None: the job's own.
Result<std::optional<std::chrono::milliseconds>> grace_of(const StopOptions& options) {
  if (options.grace.empty()) return std::nullopt;
  ANTDT_TRY(const std::uint32_t ms, milliseconds_of("--grace", options.grace));
  return std::chrono::milliseconds(ms);
}

// What the job's configuration says about its end.
struct EndPatience {
  std::chrono::milliseconds grace = kGraceOfAnother;
  Duration may_come_back = kMayComeBack;
};

// If that cannot be read, as on a filesystem that does not answer, the job ends all the same, since
// it has the order already.
EndPatience patience_of_job(const std::string& run_dir) {
  EndPatience patience;
  const auto config =
      within(kDiskPatience, [run_dir] { return launcher::load_effective(run_dir); });
  if (!config || !*config) return patience;
  patience.grace = (*config)->failure.stop_grace;
  // A job daemon that stands by has the job when the lease of the lost one has ended.
  if (const auto& cluster = (*config)->cluster; !cluster.store.empty()) {
    patience.may_come_back += cluster.store_lease;
  }
  return patience;
}

// Through an agent, that adds who asks.
std::string reason_of(const StopOptions& options, const RunningJob& job) {
  if (job.through.wanted()) return options.reason;
  const std::string because = options.reason.empty() ? "" : ": " + options.reason;
  return fmt::format("antdt stop, asked by {}{}", operator_name(), because);
}

// The command, for people, that ends the job without what is waited for.
std::string stop_now(const RunningJob& job) {
  return fmt::format("antdt stop {} --grace 0s", named(job));
}

// The job is over, and its daemon waits for copies on other hosts. It knows for how long.
bool copies_last(const report::Status& status) {
  return by_name<JobEnd>(status.state).has_value() && !status.waiting_for.empty();
}

// Which worker writes how much of a checkpoint; it changes while bytes move.
std::vector<std::string> written_by(const report::Status& status) {
  std::vector<std::string> all;
  const auto add = [&](const auto& processes) {
    for (const auto& p : processes) {
      if (p.io && p.io->what == kWrites) all.push_back(fmt::format("{}: {}", p.id, p.io->text));
    }
  };
  add(status.workers);
  add(status.servers);
  return all;
}

std::string why_late(const RunningJob& job, std::chrono::milliseconds grace) {
  const std::string within = schema::format_duration(grace);
  if (job.place == RunningJob::Place::kUnknown) {
    return fmt::format("job {} has not left {} within its grace of {}", job.control.job,
                       job.through.agent, within);
  }
  return fmt::format("the job in {} did not end within its grace of {}; see {}/jobd.log",
                     job.run_dir, within, job.run_dir);
}

// Returns when `over` is true. Waits for `grace` and some time after it, and for as long as the
// last checkpoint is written, as the job does. An error of `over` is none if it may pass. It is not
// late before `not_late_before`, which `over` may set.
Status await_end(RunningJob& job, std::chrono::milliseconds grace,
                 const std::function<Result<bool>()>& over, const MonoTime& not_late_before) {
  const SteadyClock clock;
  MonoTime deadline = clock.now() + grace + kAfterGrace;
  MonoTime tell_at = clock.now() + kTellEvery;
  std::vector<std::string> written;
  while (true) {
    const auto ended = over();
    const MonoTime now = clock.now();
    const bool late = now > std::max(deadline, not_late_before);
    if (!ended && (late || ended.error().kind != ErrorKind::kUnreachable)) {
      return tl::unexpected<Error>(ended.error());
    }
    if (ended && *ended) return {};
    if (late) return fail(ErrorKind::kUnreachable, "{}", why_late(job, grace));
    if (now >= tell_at) {
      tell_at = now + kTellEvery;
      const auto status = status_of(job);
      auto newest = status ? written_by(*status) : std::vector<std::string>{};
      const bool copies = status && copies_last(*status);
      if (copies) newest.push_back("waiting for " + status->waiting_for);
      if (copies || (!newest.empty() && newest != written)) {
        deadline = now + grace + kAfterGrace;
        fmt::print(stderr, "{}; {} ends the job without it\n", fmt::join(newest, "; "),
                   stop_now(job));
      }
      written = std::move(newest);
    }
    std::this_thread::sleep_for(job.through.wanted() ? kLookElsewhereEvery : kLookEvery);
  }
}

// A job that ended by itself at that moment, or failed, is reported as such.
Result<int> tell_end(const std::string& run_dir) {
  ANTDT_TRY(const report::Summary summary, launcher::read_summary(run_dir));
  fmt::print("{}: {}\n", summary.state, run_dir);
  for (const std::string& line : launcher::closing_lines(summary, run_dir)) {
    fmt::print("{}\n", line);
  }
  return end_of(summary) == JobEnd::kStopped ? 0 : static_cast<int>(summary.exit.code);
}

// Only whether the agent still has the job can be known.
Result<int> await_gone_from(RunningJob& job, std::chrono::milliseconds grace) {
  ANTDT_RETURN_IF_ERROR(
      await_end(job, grace, [&job] { return has_left(job.through, job.control.job); }, {}));
  fmt::print("{} has left {}\n", job.control.job, job.through.agent);
  return 0;
}

// For as long as the job runs, here or, once a job daemon that stood by has it, elsewhere.
Result<int> await_end_of_run(RunningJob& job, std::optional<std::chrono::milliseconds> grace) {
  const EndPatience patience = patience_of_job(job.run_dir);
  const SteadyClock clock;
  std::optional<MonoTime> gone_since;
  MonoTime not_late_before{};
  const auto over = [&]() -> Result<bool> {
    ANTDT_TRY(const RunState state, state_of(job));
    if (state != RunState::kBrokenOff) {
      gone_since.reset();
      return state == RunState::kEnded;
    }
    if (!gone_since) gone_since = clock.now();
    not_late_before = *gone_since + patience.may_come_back + kAfterGrace;
    // Elsewhere, it may only be that etcd does not answer.
    if (job.place != RunningJob::Place::kHere) return false;
    if (clock.now() - *gone_since < patience.may_come_back) return false;
    // An error may pass: agents lead to a job daemon that took the job over only after a moment.
    if (state_elsewhere(job.run_dir) == RunState::kRunning) {
      ANTDT_TRY(RunningJob elsewhere, reach_elsewhere(job.run_dir));
      std::swap(job, elsewhere);
    }
    return true;
  };
  while (true) {
    ANTDT_RETURN_IF_ERROR(await_end(job, grace.value_or(patience.grace), over, not_late_before));
    if (state_of(job.run_dir) == RunState::kEnded) return tell_end(job.run_dir);
    // The error says that the run broke off, and how to go on.
    if (job.place == RunningJob::Place::kHere) {
      ANTDT_TRY(RunningJob again, reach(job.run_dir));
      std::swap(job, again);
    }
    gone_since.reset();
  }
}

Result<int> stop(const StopOptions& options) {
  ANTDT_TRY(RunningJob job, reach(options.job, options.through));
  ANTDT_TRY(const auto grace, grace_of(options));
  wire::StopJob order;
  order.reason = reason_of(options, job);
  order.has_own_grace = !grace.has_value();
  if (grace) order.grace_ms = static_cast<std::uint32_t>(grace->count());
  ANTDT_RETURN_IF_ERROR(give(job, order));
  if (options.no_wait) {
    fmt::print("stopping: {}\n", job.run_dir);
    return 0;
  }
  if (options.through.wanted()) {
    fmt::print("stopping: {}\n", job.run_dir);
    return await_gone_from(job, grace.value_or(kGraceOfAnother));
  }
  return await_end_of_run(job, grace);
}

}  // namespace

void add_stop(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<StopOptions>();
  CLI::App* command = app.add_subcommand("stop", "Stop a run after a checkpoint");
  command->add_option("RUN", options->job, kJobHelp)->required();
  command
      ->add_option("--grace", options->grace,
                   "how long the end may take, such as 10s, and longer only while the last "
                   "checkpoint is written; default failure.stop_grace")
      ->type_name("TIME");
  command->add_option("--reason", options->reason, "why, for the record");
  command->add_flag("--no-wait", options->no_wait, "return when the job daemon has heard it");
  add_agent_options(*command, options->through, help_with_job("stop the job of another user"));
  command->callback([options, &exit_code] {
    const auto code = stop(*options);
    exit_code = code ? *code : report(code.error());
  });
}

}  // namespace antdt::cli
