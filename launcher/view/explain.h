// Explains in sentences why a job, or one of its workers, is in its state, what was done about it,
// and what comes next, from the status and the files of the job daemon. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "launcher/view/status_view.h"

namespace antdt::launcher {

struct ExplainInput {
  std::string run_dir;
  std::string status_json;   // set for a running job
  std::string summary_json;  // set for a job that has ended; if neither is set, the run broke off
  std::vector<EventView> events;
  // Of a run that broke off: whether a complete checkpoint is in its directory. Empty: not known.
  std::optional<bool> has_checkpoint;
  std::string given_up;  // likewise: why its agent gave it up (launcher/start/run_directory.h)
  std::string worker;    // empty: the job as a whole
};

struct Explanation {
  std::vector<std::string> why, done, next;  // sentences
};

// kUsage for a worker that the job does not have; the error names those it has.
[[nodiscard]] Result<Explanation> explain(const ExplainInput& input);

// Each part under a heading; empty parts are left out.
[[nodiscard]] std::vector<std::string> to_lines(const Explanation& explanation);
// {"why":[…],"done":[…],"next":[…]}
[[nodiscard]] std::string to_json(const Explanation& explanation);

}  // namespace antdt::launcher
