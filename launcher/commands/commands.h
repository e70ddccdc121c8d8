// The commands of antdt. Each adds itself to the program and, if it is the one that was called,
// sets the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::cli {

void add_run(CLI::App& app, int& exit_code);
void add_torchrun(CLI::App& app, int& exit_code);
// The program's arguments, with the flags of `torchrun` in one spelling: torchrun also takes
// --nproc_per_node. What follows the script is the script's.
[[nodiscard]] std::vector<std::string> with_dashes(std::vector<std::string> arguments);
void add_attach(CLI::App& app, int& exit_code);
void add_top(CLI::App& app, int& exit_code);
void add_status(CLI::App& app, int& exit_code);
void add_jobs(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_logs(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_drain(CLI::App& app, int& exit_code);  // and undrain
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
void add_diagnose(CLI::App& app, int& exit_code);
void add_simulate(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_replay(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);  // shards, allreduce

// Exit codes of the program: 1 failed, 2 wrong usage or configuration, 3 a host has no room or
// cannot be reached.
[[nodiscard]] int exit_code_of(const Error& error);
// Prints the error to standard error and returns its exit code.
int report(const Error& error);

}  // namespace antdt::cli
