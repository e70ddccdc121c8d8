// The cells of the matrix: a situation and a solution, with the job that is run for them. Pure.
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
  std::vector<std::string> only;       // situations; empty: all
  std::vector<std::string> solutions;  // empty: all, or with `quick` those that show most
  std::string traces;                  // see situations()
};
[[nodiscard]] Windows windows_of(const Wanted& wanted);
// How long a cell's job takes with the best schedule, or with equal parts if the solution makes no
// others. No job is shorter.
[[nodiscard]] Duration least_job(const Windows& windows);

struct Cell {
  Situation situation;
  std::string solution;
  std::string not_run;  // the reason; empty: it is run
};
// kUsage if a name does not exist.
[[nodiscard]] Result<std::vector<Cell>> matrix(const Wanted& wanted);

// The work from which its ideal is computed; the number of samples is not set.
[[nodiscard]] fleet::Work work_of(const Situation& situation);
// How many records its job gets: a number of whole steps.
[[nodiscard]] std::uint64_t records_for(const Cell& cell, const fleet::Speeds& speeds,
                                        Duration least);
// The agents that are the hosts of a situation with named hosts.
struct Cluster {
  std::vector<std::string> addresses;
  std::string keys;  // the keys' directory
};
[[nodiscard]] std::string job_toml(const Cell& cell, const Windows& windows, std::uint64_t records,
                                   std::uint64_t seed, const Cluster& cluster = {});

}  // namespace antdt::stragglers
