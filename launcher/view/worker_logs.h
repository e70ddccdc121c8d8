// The workers' output: RUN/logs/<worker>.<attempt>.{out,err}, each with a part
// before it, `<file>.1`, once it has grown (docs/agent.md).
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
  std::string host = {};  // "": this one
};

// By the name of its file, "w3.2.err"; nothing for other files of logs/: parts that were rotated
// away, the job daemon's own.
[[nodiscard]] std::optional<WorkerLog> log_of(const std::string& name);

// Those in this machine's `run_dir`, by worker, attempt, output before errors.
[[nodiscard]] std::vector<WorkerLog> find_logs(const std::string& run_dir);

struct LogFilter {
  std::optional<WorkerId> worker;  // none: all
  std::optional<Attempt> attempt;  // none: the newest of each worker
  bool out = true;
  bool err = true;
};
// Pure.
[[nodiscard]] std::vector<WorkerLog> select(const std::vector<WorkerLog>& logs,
                                            const LogFilter& filter);

// Whole lines of one log, from its last `lines` on (none: from its beginning),
// through rotations.
class LogReader {
 public:
  LogReader(std::string path, std::optional<std::size_t> lines);
  LogReader(LogReader&& other) noexcept;
  LogReader& operator=(LogReader&&) = delete;
  ~LogReader();

  // What was written since the last call, without line ends. With `last`, also a
  // line that has no end.
  [[nodiscard]] std::vector<std::string> read(bool last);

 private:
  void read_open_file();
  [[nodiscard]] bool reopen_if_rotated();
  std::string path_;
  std::optional<std::size_t> lines_;
  int fd_ = -1;
  std::string text_;  // read, not given out
};

// Takes the whole lines out of `text`, without line ends. With `last`, also what is behind them.
[[nodiscard]] std::vector<std::string> take_lines(std::string& text, bool last);

// The last `lines` lines of a text that may end without a line end. Pure.
[[nodiscard]] std::string_view last_lines_of(std::string_view text, std::size_t lines);

}  // namespace antdt::launcher
