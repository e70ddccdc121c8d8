// The main() of a worker in C++.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/main/parts.h"

namespace antdt::trainer {

// The names that job.toml may use with this program.
struct Names {
  std::vector<std::string> models;
  std::vector<std::string> readers;
  std::vector<std::string> optimizers;
  std::vector<std::string> metrics;
  std::vector<std::string> schedules;
};

// What one program has that others have not.
struct WorkerProgram {
  // The parts for a job's effective configuration (JSON).
  std::function<Result<std::unique_ptr<Parts>>(const std::string& config_json)> parts;
  Names names;
};

// Is the worker that the agent started, to its end, or answers --describe and --check, as
// include/antdt/kit.h says of run_worker(). Answers the exit code.
[[nodiscard]] int run_program(int argc, char** argv, const WorkerProgram& program);

}  // namespace antdt::trainer
