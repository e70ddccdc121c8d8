#include "launcher/commands/operate/elsewhere.h"

#include <fmt/format.h>
#include <unistd.h>

#include "core/os/fs.h"
#include "jobd/disk/run_journal.h"
#include "launcher/start/run_directory.h"
#include "launcher/view/summary_view.h"

namespace antdt::cli {
namespace {

constexpr Duration kOneOfThemAnswers = std::chrono::seconds(2);

// Whether the run's summary could be fetched.
bool fetch_summary(const jobd::RunJournal& journal, const std::string& run_dir) {
  const auto text = journal.kept_file("summary.json");
  if (!text || !launcher::parse_summary(*text)) return false;
  return write_file_atomic(run_dir + "/summary.json", *text).has_value();
}

}  // namespace

RunState state_elsewhere(const std::string& run_dir) {
  const auto journal = jobd::RunJournal::of_run(run_dir);
  if (!journal || !journal->is_in_etcd()) return RunState::kBrokenOff;
  if (!journal->holder_elsewhere().empty()) return RunState::kRunning;
  return fetch_summary(*journal, run_dir) ? RunState::kEnded : RunState::kBrokenOff;
}

RunState present_state(const std::string& run_dir) {
  const RunState here = state_of(run_dir);
  return here == RunState::kBrokenOff ? state_elsewhere(run_dir) : here;
}

Status check_not_elsewhere(const std::string& run_dir) {
  const auto journal = jobd::RunJournal::of_run(run_dir);
  const std::string holder = journal ? journal->holder_elsewhere() : "";
  if (holder.empty()) return {};
  return fail(ErrorKind::kUnreachable,
              "the job of {} goes on elsewhere: the job daemon on {} has it. Watch it with antdt "
              "attach {}",
              run_dir, holder, run_dir);
}

Result<RunningJob> reach_elsewhere(const std::string& run_dir) {
  ANTDT_TRY(const launcher::JobConfig config, launcher::load_effective(run_dir));
  std::string answers;
  for (const std::string& agent : config.cluster.hosts) {
    auto found = [&]() -> Result<RunningJob> {
      ANTDT_TRY(RunningJob job, reach_through({agent, config.cluster.keys}, config.job.id));
      ANTDT_TRY([[maybe_unused]] const auto status, job.link.status(0, kOneOfThemAnswers));
      job.place = RunningJob::Place::kElsewhere;
      job.run_dir = run_dir;
      return job;
    }();
    if (found) return found;
    answers += fmt::format("\n  {}: {}", agent, found.error().message);
  }
  return fail(ErrorKind::kUnreachable,
              "the job of {} goes on elsewhere, and no agent of its hosts leads to its job daemon "
              "now:{}",
              run_dir, answers);
}

std::string unseen_host(const std::string& run_dir) {
  const std::string host = launcher::started_elsewhere(run_dir);
  if (host.empty() || ::access((run_dir + "/summary.json").c_str(), F_OK) == 0) return "";
  const auto journal = jobd::RunJournal::of_run(run_dir);
  return journal && journal->is_in_etcd() ? "" : host;
}

Status check_seen(const std::string& run_dir) {
  const std::string host = unseen_host(run_dir);
  if (host.empty()) return {};
  return fail(ErrorKind::kUnreachable,
              "the run in {} was started on {}, and its job daemon can be reached from there only: "
              "give the command on {}, or ask an agent on one of the job's hosts, with the job's "
              "id: antdt status {} "
              "--agent HOST:PORT. If {} is lost: antdt run --resume {} --lost-host {}",
              run_dir, host, host, job_id(run_dir), host, run_dir, host);
}

}  // namespace antdt::cli
