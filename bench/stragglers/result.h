// The result of the comparison: a line for each cell. Pure.
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
  fleet::Comparison line;  // job_seconds are the seconds in training phases
  std::string run_dir;
};
// Reads a run's summary.json. The error (kCorrupt) names what is missing.
[[nodiscard]] Result<Measured> measured(const Cell& cell, const fleet::Speeds& speeds,
                                        const std::string& summary_json);

struct Line {
  std::string situation, solution, what;
  std::uint32_t workers = 0;
  std::string not_run;         // why there are no numbers
  std::vector<Measured> runs;  // in rising order of their share of the ideal; the median represents
                               // them
  std::optional<double> speedup_over_none;
  [[nodiscard]] const Measured& middle() const { return runs[(runs.size() - 1) / 2]; }
};

[[nodiscard]] Line line_of(const Cell& cell, std::vector<Measured> runs,
                           const std::string& failure);
// How much faster each solution is than "none" in the same situation, if that was run. The jobs
// differ in length, and a situation varies over time. So the shares of the ideal are compared,
// which is the same as comparing times if the jobs are equal.
void compare_with_none(std::vector<Line>& lines);

[[nodiscard]] std::vector<std::string> table(const std::vector<Line>& lines);
// The list of results as documented; for a cell that was not run it has the reason, and unknown
// values are null.
[[nodiscard]] std::string to_json(const std::vector<Line>& lines);

}  // namespace antdt::stragglers
