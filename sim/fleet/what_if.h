// What a run would have taken otherwise: under other solutions, and without some of its workers.
// Compares simulated runs with the one that plays the run as it was, so that what the simulation
// does not know cancels out, and recommends one. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/fleet/result.h"

namespace antdt::fleet {

struct Alternative {
  std::string solution;
  std::vector<std::string> without = {};  // the workers that are left out: "w3"
  std::string without_host = {};          // which run on this host; empty: hosts do not matter
  bool as_it_was = false;                 // what the run did
  Comparison line = {};
  std::string problem = {};  // why it cannot be played; empty: `line` is its result

  // Set by compare(); of training. Negative: it would have taken longer.
  double saved_seconds = 0;
  double saved_worker_seconds = 0;

  [[nodiscard]] bool played() const { return problem.empty(); }
  [[nodiscard]] double worker_seconds() const { return line.job_seconds * line.workers; }
  // "nd without host b (w2, w3)"
  [[nodiscard]] std::string name() const;
};

// How slow the workers of a run were: seconds of their own work for a sample, 0 if unknown, and
// where they ran.
struct WorkerPace {
  std::string id;
  std::string host;
  double seconds_per_sample = 0;
};
// The workers to leave out, as indexes into `workers`: those of each of the slowest hosts or, if
// all run on one host, each of the slowest workers. The slowest comes first; at most three, of
// which all but the first are slower than most by a tenth. Empty if there is only one.
struct LeftOut {
  std::string host;
  std::vector<std::uint32_t> workers;
};
[[nodiscard]] std::vector<LeftOut> slowest(const std::vector<WorkerPace>& workers);

// Fills in what each alternative saves compared with the one that is as_it_was, or with
// `recorded_seconds` of `recorded_workers` workers if none is. The result is the index of the one
// that is recommended: the fastest, or, among those that take nearly as long, the one with the
// fewest worker-seconds. Empty if none saves a noticeable part of the time.
[[nodiscard]] std::optional<std::size_t> compare(std::vector<Alternative>& alternatives,
                                                 double recorded_seconds,
                                                 std::uint32_t recorded_workers);

// A sentence: what is recommended, what it saves, and how to get it.
[[nodiscard]] std::string advice(const std::vector<Alternative>& alternatives,
                                 std::optional<std::size_t> recommended);

// One object for each alternative: the fields of result.h's to_json, and without, without_host,
// as_it_was, problem, saved_seconds, saved_worker_hours, recommended.
[[nodiscard]] std::string to_json(const std::vector<Alternative>& alternatives,
                                  std::optional<std::size_t> recommended);

}  // namespace antdt::fleet
