// What the processes of a run have written: the logs of this host, and of other hosts if some are
// not here.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "launcher/commands/show/host_logs.h"
#include "launcher/view/status_view.h"
#include "launcher/view/worker_logs.h"

namespace antdt::cli {

// The processes according to the job daemon, or to the summary.
struct Processes {
  std::vector<report::WorkerStatus> workers;
  std::vector<report::ServerStatus> servers;
};
[[nodiscard]] Result<Processes> processes_of(const std::string& run_dir);

// A worker or server of the run, in its newest attempt.
struct LoggingProcess {
  WorkerId worker;
  Attempt attempt;
  std::string host;
  bool started = false;
};
// Whether its output is asked for.
[[nodiscard]] bool is_asked_for(const LoggingProcess& process, const launcher::LogFilter& filter);

class RunLogs {
 public:
  // `follow`: logs may appear later, also on other hosts.
  [[nodiscard]] static Result<RunLogs> open(const std::string& run_dir,
                                            const launcher::LogFilter& filter, bool follow);

  // Hosts are asked seldom, so new logs on them are found with a delay.
  [[nodiscard]] std::vector<launcher::WorkerLog> find();
  // Reads the lines of a log, from its last `lines` on.
  [[nodiscard]] std::function<std::vector<std::string>(bool last)> reader(
      const launcher::WorkerLog& log, std::optional<std::size_t> lines);

  // Those of the run; empty if nobody knows them.
  [[nodiscard]] const std::vector<LoggingProcess>& processes() const { return processes_; }

  // One sentence, with the reason, for each requested log that cannot be read. A file is made when
  // something is written, so one that is on none of the hosts, all of which answer, is not missing.
  [[nodiscard]] std::vector<std::string> missing(
      const std::vector<launcher::WorkerLog>& found) const;
  // The requested processes of which `found` has nothing.
  [[nodiscard]] std::vector<LoggingProcess> without_files(
      const std::vector<launcher::WorkerLog>& found) const;

 private:
  explicit RunLogs(std::string run_dir) : run_dir_(std::move(run_dir)) {}

  std::string run_dir_;
  std::vector<LoggingProcess> processes_;
  std::vector<LoggingProcess> expected_;  // those whose output is asked for
  std::unique_ptr<HostLogs> hosts_;       // null: all logs are on this host
  SteadyClock clock_;
  MonoTime asked_{};
  std::vector<launcher::WorkerLog> elsewhere_;
};

// The lines of all of a run's processes, as they are written. Where there are several processes,
// each line begins with the name of its own.
class RunOutput {
 public:
  // `lines`: how many of each existing log come first; empty: all. `several`: it is known already
  // that there will be several processes.
  RunOutput(RunLogs& logs, launcher::LogFilter filter, std::optional<std::size_t> lines,
            bool several = false);

  // The lines since the last call; logs that are new are read from their beginning. With `last`,
  // also lines without a line end.
  [[nodiscard]] std::vector<std::string> read(bool last);

 private:
  struct Open {
    launcher::WorkerLog log;
    std::function<std::vector<std::string>(bool last)> read;
  };
  void find_new();

  RunLogs& logs_;
  launcher::LogFilter filter_;
  std::optional<std::size_t> lines_;
  bool several_;
  bool first_ = true;
  std::set<std::pair<std::string, std::string>> known_;  // host and path
  std::set<WorkerId> workers_;  // of the run, even those that have written nothing
  std::list<Open> open_;
};

}  // namespace antdt::cli
