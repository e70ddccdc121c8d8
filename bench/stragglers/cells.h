// Cells of the matrix: a situation and a solution, and the job that is run for them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/stragglers/situations.h"
#include "core/result.h"
#include "sim/fleet/ideal.h"

namespace antdt::stragglers {

struct Wanted {
  bool quick = false;
  std::vector<std::string> only;       // situations; none: all
  std::vector<std::string> solutions;  // none: all, or with `quick` those that tell most
  std::string traces;                  // as of situations()
};
[[nodiscard]] Windows windows_of(const Wanted& wanted);
// How long the best schedule takes for a cell's job, or equal parts where the solution
// makes no others: so no job is shorter.
[[nodiscard]] Duration least_job(const Windows& windows);

struct Cell {
  Situation situation;
  std::string solution;
  std::string not_run;  // why; empty: it is run
};
// kUsage for names that there are not.
[[nodiscard]] Result<std::vector<Cell>> matrix(const Wanted& wanted);

// What its ideal is counted with; samples are left open.
[[nodiscard]] fleet::Work work_of(const Situation& situation);
// How many records its job gets, a number of whole steps.
[[nodiscard]] std::uint64_t records_for(const Cell& cell, const fleet::Speeds& speeds,
                                        Duration least);
// The agents that are the hosts of a situation that names some.
struct Cluster {
  std::vector<std::string> addresses;
  std::string keys;  // directory
};
[[nodiscard]] std::string job_toml(const Cell& cell, const Windows& windows, std::uint64_t records,
                                   std::uint64_t seed, const Cluster& cluster = {});

}  // namespace antdt::stragglers
