// Simulates a job in virtual time under a solution, or under several that are compared in a table,
// for `antdt simulate` and `antdt replay`.
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

// Only jobs with a program that speaks the antdt protocol can be simulated.
[[nodiscard]] Status can_be_played(const launcher::JobConfig& config);

// Whether virtual time has a solution of this name.
[[nodiscard]] Status can_decide(const std::string& solution);

// Whether its workers are members of a collective.
[[nodiscard]] bool in_collective(const launcher::JobConfig& config);

struct PlayedJob {
  fleet::Comparison line;  // without speedup_over_none
  double samples_per_second = 0;
};
// The error says why the job cannot begin, or why it failed.
[[nodiscard]] Result<PlayedJob> play(const FleetJob& job, const fleet::Speeds& speeds,
                                     const std::string& solution);

// Returns one line for each of `solutions`, each compared with `none`.
[[nodiscard]] Result<std::vector<fleet::Comparison>> play_each(
    const FleetJob& job, const fleet::Speeds& speeds, const std::vector<std::string>& solutions);

void print_comparison(const std::vector<fleet::Comparison>& lines, bool json);

// Makes it a job of `workers` workers that is equivalent to several such jobs side by side: each
// worker's part of a step and the number of steps stay the same.
[[nodiscard]] Status grow(FleetJob& job, std::uint32_t workers);

}  // namespace antdt::cli
