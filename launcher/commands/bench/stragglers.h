// antdt bench stragglers: runs solutions and situations as real jobs, and compares each with its
// ideal.
#pragma once

#include <CLI/CLI.hpp>

namespace antdt::cli {

void add_bench_stragglers(CLI::App& bench, int& exit_code);

}  // namespace antdt::cli
