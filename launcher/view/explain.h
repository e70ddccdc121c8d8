// Why a job, or one worker of it, is in its state, what was done about it, and
// what comes next: in sentences, from what the job daemon says and has written.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "launcher/view/status_view.h"

namespace antdt::launcher {

struct ExplainInput {
  std::string run_dir;
  std::string status_json;   // of a running job; or
  std::string summary_json;  // of an ended one; neither: it was broken off
  std::vector<EventView> events;
  std::string worker;  // empty: the job as a whole
};

struct Explanation {
  std::vector<std::string> why, done, next;  // sentences
};

// kUsage for a worker that the job does not have, naming those it has.
[[nodiscard]] Result<Explanation> explain(const ExplainInput& input);

// Under a heading each; a part with nothing to say is left out.
[[nodiscard]] std::vector<std::string> to_lines(const Explanation& explanation);
// {"why":[…],"done":[…],"next":[…]}
[[nodiscard]] std::string to_json(const Explanation& explanation);

}  // namespace antdt::launcher
