// Everything that `antdt run` checks and finds out before anything starts.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "core/transport/socket.h"
#include "launcher/config/job_config.h"
#include "launcher/config/placement.h"
#include "launcher/start/run_directory.h"

namespace antdt::cli {

struct Prepared {
  std::string job_toml;        // as given
  launcher::JobConfig config;  // with its job id, its programs found, its count placed
  std::vector<launcher::HostResources> hosts;
  launcher::Placement places;  // on `hosts`
};

// Reads and checks the job, asks the hosts and places workers and servers.
[[nodiscard]] Result<Prepared> prepare(transport::Context& context, const std::string& job_file,
                                       const std::vector<std::string>& overrides,
                                       const launcher::RunOptions& options);

// The program that decides runs beside the job daemon, on this machine: its full path.
[[nodiscard]] Status find_own_solution(launcher::JobConfig& config);

// "w0 .. w3 on 10.0.0.1:7700", a line for each host of the workers, then of the servers.
[[nodiscard]] std::vector<std::string> placement_lines(const Prepared& prepared);

// Builds the data's index, or finds it built. RUN/data.json as text.
[[nodiscard]] Result<std::string> index_data(const launcher::JobConfig& config);

}  // namespace antdt::cli
