#include "launcher/commands/operate/running_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "core/report/states.h"
#include "launcher/commands/show/runs.h"

namespace antdt::cli {
namespace {

constexpr Duration kAnswer = std::chrono::seconds(3);
constexpr Duration kAskAgain = std::chrono::milliseconds(200);
constexpr Duration kTellAfter = std::chrono::seconds(5);

}  // namespace

Result<RunningJob> reach(const std::string& job) {
  ANTDT_TRY(std::string run_dir, find_job(job));
  const RunState state = state_of(run_dir);
  if (state == RunState::kEnded) {
    return fail(ErrorKind::kUsage, "the run in {} has ended: antdt status {} shows how", run_dir,
                run_dir);
  }
  if (state == RunState::kBrokenOff) {
    ANTDT_RETURN_IF_ERROR(check_not_elsewhere(run_dir));
    return fail(
        ErrorKind::kUnreachable,
        "the run in {} was broken off: nothing of it runs; go on with antdt run --resume {}",
        run_dir, run_dir);
  }
  ANTDT_TRY(launcher::RunControl control, launcher::read_control(run_dir));
  auto context = std::make_unique<transport::Context>();
  ANTDT_TRY(launcher::JobLink link, launcher::JobLink::open(*context, control.jobd_socket));
  return RunningJob{std::move(run_dir), std::move(control), std::move(context), std::move(link)};
}

Result<report::Status> status_of(RunningJob& job) {
  ANTDT_TRY(const launcher::JobStatus answer, job.link.status(0, kAnswer));
  return launcher::parse_status(answer.status_json);
}

Status wait_until(RunningJob& job, const std::function<bool(const report::Status&)>& happened) {
  const SteadyClock clock;
  MonoTime tell_at = clock.now() + kTellAfter;
  while (true) {
    const auto status = status_of(job);
    if (status && happened(*status)) return {};
    const RunState state = state_of(job.run_dir);
    if (state == RunState::kEnded) {
      return fail(ErrorKind::kRefused, "the job ended meanwhile: antdt status {} shows how",
                  job.run_dir);
    }
    if (state == RunState::kBrokenOff) {
      ANTDT_RETURN_IF_ERROR(check_not_elsewhere(job.run_dir));
      return fail(ErrorKind::kUnreachable, "the job's processes are gone; see {}/agent.log",
                  job.run_dir);
    }
    if (clock.now() >= tell_at) {
      const std::string& waits = status ? status->waiting_for : std::string("the job daemon");
      fmt::print(stderr, "waiting for {}\n", waits.empty() ? "the job" : waits);
      tell_at = clock.now() + kTellAfter;
    }
    std::this_thread::sleep_for(kAskAgain);
  }
}

bool is_settled(const report::Status& s) {
  const std::optional<JobState> state = state_of(s);
  return s.waiting_for.empty() && state != JobState::kForming && state != JobState::kStarting &&
         std::ranges::none_of(s.workers,
                              [](const auto& w) { return state_of(w) == ProcessState::kLeaving; });
}

}  // namespace antdt::cli
