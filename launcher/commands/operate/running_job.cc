#include "launcher/commands/operate/running_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <thread>

#include "core/os/fs.h"
#include "core/report/states.h"
#include "core/schema/units.h"
#include "core/wire/drill_messages.h"
#include "core/wire/operator_messages.h"
#include "launcher/commands/operate/elsewhere.h"
#include "launcher/commands/show/standing_run.h"
#include "launcher/start/leftovers.h"
#include "launcher/start/paths.h"

namespace antdt::cli {
namespace {

constexpr Duration kAnswer = std::chrono::seconds(3);
constexpr Duration kAskAgain = std::chrono::milliseconds(200);
constexpr Duration kTellAfter = std::chrono::seconds(5);
// A disk may stand still for a minute. An order that a job daemon took along when it was killed is
// never answered.
constexpr Duration kOrderPatience = std::chrono::minutes(2);
// An agent may be started again.
constexpr Duration kAgentMayBeAway = std::chrono::seconds(30);

}  // namespace

Result<std::uint32_t> milliseconds_of(const char* option, const std::string& text) {
  const auto duration = schema::parse_duration(text);
  if (!duration) return fail(ErrorKind::kUsage, "{}: {}", option, duration.error().message);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(*duration).count();
  if (ms <= std::numeric_limits<std::uint32_t>::max()) return static_cast<std::uint32_t>(ms);
  return fail(ErrorKind::kUsage, "{} {}: at most 49 days", option, text);
}

Result<RunningJob> reach_through(const ThroughAgent& through, const std::string& job) {
  auto context = std::make_unique<transport::Context>();
  ANTDT_TRY(launcher::JobLink link,
            launcher::JobLink::open_through(*context, through.agent,
                                            launcher::absolute_path(through.keys, "."), job));
  launcher::RunControl control;
  control.job = job;
  return RunningJob{RunningJob::Place::kUnknown,
                    job,
                    std::move(control),
                    std::move(context),
                    std::move(link),
                    through};
}

Result<RunningJob> reach(const std::string& job, const ThroughAgent& through) {
  if (through.wanted()) return reach_through(through, job);
  ANTDT_TRY(std::string run_dir, locate_run(job));
  const auto looked = state_in_time(run_dir);
  if (!looked) return reach_without_files(run_dir, looked.error());
  const RunState here = *looked;
  ANTDT_RETURN_IF_ERROR(check_seen(run_dir));
  // Locks may be shared with the machine on which its daemon runs.
  const bool lock_of_another =
      here == RunState::kRunning && !launcher::started_elsewhere(run_dir).empty();
  if (lock_of_another) return reach_elsewhere(run_dir);
  const RunState state = here == RunState::kBrokenOff ? state_elsewhere(run_dir) : here;
  if (state == RunState::kRunning && here != state) return reach_elsewhere(run_dir);
  if (state == RunState::kEnded) {
    return fail(ErrorKind::kUsage, "the run in {} has ended: antdt status {} shows how", run_dir,
                run_dir);
  }
  if (state == RunState::kBrokenOff) {
    return tl::unexpected<Error>(launcher::broken_off(run_dir));
  }
  ANTDT_TRY(launcher::RunControl control, launcher::read_control(run_dir));
  auto context = std::make_unique<transport::Context>();
  ANTDT_TRY(launcher::JobLink link, launcher::JobLink::open(*context, control.jobd_socket));
  return RunningJob{RunningJob::Place::kHere, std::move(run_dir), std::move(control),
                    std::move(context), std::move(link)};
}

std::string named(const RunningJob& job) {
  return job.place == RunningJob::Place::kUnknown ? job.run_dir + options_for(job.through)
                                                  : job.run_dir;
}

namespace {

bool has_agent(const launcher::RunControl& control) {
  const std::string sockets = std::filesystem::path(control.jobd_socket).parent_path();
  return FileLock::owner(launcher::private_agent_lock(sockets)).has_value();
}

}  // namespace

Result<RunState> state_of(const RunningJob& job) {
  switch (job.place) {
    case RunningJob::Place::kHere: {
      const auto seen = within(kDiskPatience, job.run_dir, job.looks,
                               [run_dir = job.run_dir] { return seen_state(run_dir); });
      if (seen && *seen) return **seen;
      // While its filesystem does not answer, or with an error, its agent is known by a lock that
      // lies elsewhere.
      if (has_agent(job.control)) return RunState::kRunning;
      return fail(ErrorKind::kIo, "no process of the run is left on this machine, and {}",
                  seen ? seen->error().message : does_not_answer(job.run_dir));
    }
    case RunningJob::Place::kElsewhere:
      return state_elsewhere(job.run_dir);
    case RunningJob::Place::kUnknown:
      break;
  }
  ANTDT_TRY(const bool there, is_there(job.through, job.control.job));
  return there ? RunState::kRunning : RunState::kBrokenOff;
}

Result<report::Status> status_of(RunningJob& job) {
  const auto ask = [&]() -> Result<report::Status> {
    ANTDT_TRY(const launcher::JobStatus answer, job.link.status(0, kAnswer));
    return launcher::parse_status(answer.status_json);
  };
  auto status = ask();
  if (status || job.place != RunningJob::Place::kElsewhere) return status;
  auto again = reach_elsewhere(job.run_dir);
  if (!again) return status;
  std::swap(job, *again);
  return ask();
}

namespace {

// What goes on while nothing has happened for a while.
class Waiting {
 public:
  // `what` is waited for, and said; "": it is not said now. Fails if nothing of the job runs any
  // more, or if the agent that leads to it has been away for too long.
  Status go_on(const RunningJob& job, const std::string& what) {
    const auto state = state_of(job);
    if (!state) return is_away(job, state.error(), !what.empty());
    away_since_.reset();
    if (*state == RunState::kEnded) {
      return fail(ErrorKind::kRefused, "the job ended meanwhile: antdt status {} shows how",
                  job.run_dir);
    }
    if (*state == RunState::kBrokenOff) {
      if (job.through.wanted()) {
        return fail(ErrorKind::kUnreachable, "the daemon of {} is not connected to {} any more",
                    job.control.job, job.through.agent);
      }
      return tl::unexpected<Error>(launcher::broken_off(job.run_dir));
    }
    if (!what.empty()) fmt::print(stderr, "waiting for {}\n", what);
    return {};
  }
  void heard() { away_since_.reset(); }

 private:
  Status is_away(const RunningJob& job, const Error& error, bool said) {
    const MonoTime now = clock_.now();
    if (!away_since_) away_since_ = now;
    const bool too_long = now - *away_since_ >= kAgentMayBeAway;
    if (too_long || error.kind != ErrorKind::kUnreachable) return tl::unexpected<Error>(error);
    if (said) {
      fmt::print(stderr, "no answer from the agent {}: it is asked again, for {:g} s in all\n",
                 job.through.agent, to_seconds(kAgentMayBeAway));
    }
    return {};
  }

  SteadyClock clock_;
  std::optional<MonoTime> away_since_;
};

}  // namespace

template <class Order>
Status give(RunningJob& job, const Order& order) {
  const SteadyClock clock;
  const MonoTime deadline = clock.now() + kOrderPatience;
  Waiting waiting;
  return job.link.order(order, kTellAfter, [&]() -> Status {
    if (clock.now() >= deadline) {
      return fail(
          ErrorKind::kUnreachable,
          "no answer within {} s: the order may have been carried out; antdt status {} shows "
          "it",
          to_seconds(kOrderPatience), named(job));
    }
    return waiting.go_on(job, "the job daemon, which answers when its journal has the order");
  });
}
template Status give(RunningJob&, const wire::EvictWorkers&);
template Status give(RunningJob&, const wire::InjectRules&);
template Status give(RunningJob&, const wire::ResizeJob&);
template Status give(RunningJob&, const wire::ApproveAction&);
template Status give(RunningJob&, const wire::SkipRecords&);
template Status give(RunningJob&, const wire::StopJob&);

Status wait_until(RunningJob& job, const std::function<bool(const report::Status&)>& happened) {
  const SteadyClock clock;
  MonoTime tell_at = clock.now() + kTellAfter;
  Waiting waiting;
  while (true) {
    const auto status = status_of(job);
    if (status && happened(*status)) return {};
    std::string waits;
    if (clock.now() >= tell_at) {
      waits = status ? status->waiting_for : std::string("the job daemon");
      if (waits.empty()) waits = "the job";
      tell_at = clock.now() + kTellAfter;
    }
    if (status) {
      waiting.heard();
      if (!waits.empty()) fmt::print(stderr, "waiting for {}\n", waits);
    } else {
      ANTDT_RETURN_IF_ERROR(waiting.go_on(job, waits));
    }
    std::this_thread::sleep_for(kAskAgain);
  }
}

Result<report::Status> await_status(RunningJob& job) {
  auto status = status_of(job);
  if (status || status.error().kind != ErrorKind::kUnreachable) return status;
  if (job.place == RunningJob::Place::kUnknown) return status;
  report::Status found;
  ANTDT_RETURN_IF_ERROR(wait_until(job, [&](const report::Status& s) {
    found = s;
    return true;
  }));
  return found;
}

Result<std::vector<launcher::EventView>> events_of(RunningJob& job) {
  ANTDT_TRY(const launcher::JobStatus answer, job.link.status(0, kAnswer));
  std::vector<launcher::EventView> events;
  for (const std::string& json : answer.events) {
    ANTDT_TRY(events.emplace_back(), launcher::parse_event(json));
  }
  return events;
}

bool is_settled(const report::Status& s) {
  const std::optional<JobState> state = state_of(s);
  return s.waiting_for.empty() && state != JobState::kForming && state != JobState::kStarting &&
         std::ranges::none_of(s.workers,
                              [](const auto& w) { return state_of(w) == ProcessState::kLeaving; });
}

}  // namespace antdt::cli
