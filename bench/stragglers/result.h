// What the comparison says: a line for each cell. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/stragglers/cells.h"
#include "core/result.h"
#include "sim/fleet/result.h"

namespace antdt::stragglers {

// A run of a cell's job.
struct Measured {
  fleet::Comparison line;  // job_seconds are of the training phases
  std::string run_dir;
};
// From its summary.json. The error (kCorrupt) says what it lacks.
[[nodiscard]] Result<Measured> measured(const Cell& cell, const fleet::Speeds& speeds,
                                        const std::string& summary_json);

struct Line {
  std::string situation, solution, what;
  std::uint32_t workers = 0;
  std::string not_run;         // why there are no numbers
  std::vector<Measured> runs;  // by rising share of ideal; the one in the middle speaks for all
  std::optional<double> speedup_over_none;
  [[nodiscard]] const Measured& middle() const { return runs[(runs.size() - 1) / 2]; }
};

[[nodiscard]] Line line_of(const Cell& cell, std::vector<Measured> runs,
                           const std::string& failure);
// How much faster than "none" in the same situation, where that was run. Their jobs differ
// in length, and what happens in a situation is not the same at each moment of it: so their
// shares of the ideal are compared, which for the same job is comparing its times.
void compare_with_none(std::vector<Line>& lines);

[[nodiscard]] std::vector<std::string> table(const std::vector<Line>& lines);
// The contract's list, and of cells that were not run why, with null for what is not known.
[[nodiscard]] std::string to_json(const std::vector<Line>& lines);

}  // namespace antdt::stragglers
