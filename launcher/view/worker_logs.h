// The workers' output: RUN/logs/<worker>.<attempt>.{out,err}. When a file has grown, its older part
// is in `<file>.1` (docs/agent.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"

namespace antdt::launcher {

struct WorkerLog {
  WorkerId worker;
  Attempt attempt;
  bool err = false;  // standard error
  std::string path;
  std::string host = {};  // host of the log; "": this one
};

// Parses a file name such as "w3.2.err". Empty for other files in logs/: older parts, and the job
// daemon's own output.
[[nodiscard]] std::optional<WorkerLog> log_of(const std::string& name);

// The logs in this machine's `run_dir`, ordered by worker, attempt, output before errors.
[[nodiscard]] std::vector<WorkerLog> find_logs(const std::string& run_dir);

struct LogFilter {
  std::optional<WorkerId> worker;  // empty: all workers
  std::optional<Attempt> attempt;  // empty: the newest of each worker
  bool out = true;
  bool err = true;
};
// Pure.
[[nodiscard]] std::vector<WorkerLog> select(const std::vector<WorkerLog>& logs,
                                            const LogFilter& filter);

// Reads whole lines of one log, from its last `lines` lines on (empty: from its beginning), across
// rotations.
class LogReader {
 public:
  LogReader(std::string path, std::optional<std::size_t> lines);
  LogReader(LogReader&& other) noexcept;
  LogReader& operator=(LogReader&&) = delete;
  ~LogReader();

  // The lines written since the last call, without line ends. With `last`, also a line without a
  // line end.
  [[nodiscard]] std::vector<std::string> read(bool last);

 private:
  void read_open_file();
  [[nodiscard]] bool reopen_if_rotated();
  std::string path_;
  std::optional<std::size_t> lines_;
  int fd_ = -1;
  std::string text_;  // read but not returned yet
};

// Removes the whole lines from `text` and returns them without line ends. With `last`, also the
// rest.
[[nodiscard]] std::vector<std::string> take_lines(std::string& text, bool last);

// The last `lines` lines of a text that may end without a line end. Pure.
[[nodiscard]] std::string_view last_lines_of(std::string_view text, std::size_t lines);

}  // namespace antdt::launcher
