// Simulates a job in virtual time under several solutions, and prints a table of the results, for
// `antdt simulate` and `antdt replay`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "launcher/config/job_config.h"
#include "sim/fleet/player.h"
#include "sim/fleet/result.h"

namespace antdt::cli {

struct FleetJob {
  launcher::JobConfig config;
  std::uint64_t train_records = 0;
  std::vector<std::string> hosts;
  fleet::Costs costs;
  Duration limit = std::chrono::hours(24 * 365);
};

// Only jobs that train by all-reduce, with a program that speaks the antdt protocol, can be
// simulated.
[[nodiscard]] Status can_be_played(const launcher::JobConfig& config);

// Returns one line for each of `solutions`, each compared with `none`.
[[nodiscard]] Result<std::vector<fleet::Comparison>> play_each(
    const FleetJob& job, const fleet::Speeds& speeds, const std::vector<std::string>& solutions);

void print_comparison(const std::vector<fleet::Comparison>& lines, bool json);

}  // namespace antdt::cli
