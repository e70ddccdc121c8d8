// RUN/summary.json as what people read at the end of a run. Pure but for the
// reading of the file.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::launcher {

struct Summary {
  std::string json;  // as it is in the file
  std::string state;
  int exit_code = 1;
  bool resumable = false;
  std::string first_cause;         // may have several lines
  std::vector<std::string> lines;  // quality, speed, where the time went, actions, accounts
};

// kCorrupt when it is not what a job daemon writes.
[[nodiscard]] Result<Summary> parse_summary(const std::string& json);
[[nodiscard]] Result<Summary> read_summary(const std::string& run_dir);

// What a failed or stopped run says last; nothing for one that is done.
[[nodiscard]] std::vector<std::string> closing_lines(const Summary& summary,
                                                     const std::string& run_dir);

}  // namespace antdt::launcher
