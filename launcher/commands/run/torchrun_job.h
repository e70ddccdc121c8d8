// torchrun's command line as a job of AntDT. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::cli {

struct TorchrunFlags {
  std::string nproc_per_node = "1";  // a number, "auto", "cpu" or "gpu"
  std::string nnodes;                // "2" or "1:4"; empty: as many as there are hosts
  std::string node_rank;
  std::uint32_t max_restarts = 0;
  bool module = false;                  // the script is a module: python -m
  bool no_python = false;               // the script is a program
  std::vector<std::string> hosts;       // "h1" or "h1:7700"; none: this machine
  std::vector<std::string> not_needed;  // names of flags that were given and change nothing
  std::vector<std::string> script;      // and its arguments
};

struct TorchrunJob {
  std::string job_toml;
  std::uint32_t each_host = 1;     // workers
  std::vector<std::string> notes;  // which flags are not needed, and why
};

// `python`: the interpreter's path; `cpus`: processors of this machine. The error (kUsage) says
// which flag has no meaning here and what to write instead.
[[nodiscard]] Result<TorchrunJob> torchrun_job(const TorchrunFlags& flags,
                                               const std::string& python, std::uint32_t cpus);

// See commands.h.
[[nodiscard]] std::vector<std::string> with_dashes(std::vector<std::string> arguments);

}  // namespace antdt::cli
