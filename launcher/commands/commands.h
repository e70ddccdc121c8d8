// The commands of antdt: each adds itself to the program and, when it is the
// one that was asked for, leaves its exit code.
#pragma once

#include <CLI/CLI.hpp>

#include "core/result.h"

namespace antdt::cli {

void add_run(CLI::App& app, int& exit_code);
void add_attach(CLI::App& app, int& exit_code);
void add_status(CLI::App& app, int& exit_code);
void add_jobs(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_logs(CLI::App& app, int& exit_code);
void add_evict(CLI::App& app, int& exit_code);
void add_resize(CLI::App& app, int& exit_code);
void add_inject(CLI::App& app, int& exit_code);
void add_approve(CLI::App& app, int& exit_code);
void add_stop(CLI::App& app, int& exit_code);
void add_keygen(CLI::App& app, int& exit_code);
void add_data(CLI::App& app, int& exit_code);  // audit, skip, which, synth, index
void add_data_skip(CLI::App& data, int& exit_code);
void add_data_which(CLI::App& data, int& exit_code);
void add_model(CLI::App& app, int& exit_code);  // export
void add_report(CLI::App& app, int& exit_code);
void add_simulate(CLI::App& app, int& exit_code);
void add_replay(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);  // shards, allreduce

// Exit codes of the program: 1 failed, 2 usage or configuration, 3 cannot place
// or reach.
[[nodiscard]] int exit_code_of(const Error& error);
// Prints the error to standard error and gives its exit code.
int report(const Error& error);

}  // namespace antdt::cli
