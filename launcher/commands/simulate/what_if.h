// Plays everything that a recorded run could have been: every solution that its job could have
// used, and without its slowest hosts, for `antdt replay` without --solution.
#pragma once

#include <optional>
#include <vector>

#include "core/result.h"
#include "launcher/commands/simulate/recorded_run.h"
#include "report/page.h"
#include "sim/fleet/what_if.h"

namespace antdt::cli {

struct WhatIf {
  std::vector<fleet::Alternative> alternatives;
  std::optional<std::size_t> recommended;
};
// A solution that cannot be played is an alternative with a problem. Deterministic: the same run
// gives the same alternatives.
[[nodiscard]] WhatIf play_alternatives(const RecordedRun& run);

// For people: a table, below it why an alternative cannot be played, and the advice.
[[nodiscard]] page::TableView view_of(const WhatIf& what_if);

}  // namespace antdt::cli
