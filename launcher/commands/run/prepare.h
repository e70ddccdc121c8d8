// All checks of `antdt run` that come before anything is started.
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
  std::string job_toml;  // the text as given
  // with job id, full paths of programs, and the number of workers that was placed
  launcher::JobConfig config;
  std::vector<launcher::HostResources> hosts;
  launcher::Placement places;  // indices in `hosts`
};

// Reads and checks the job, asks the hosts for their resources, and places workers and servers.
[[nodiscard]] Result<Prepared> prepare(transport::Context& context, const std::string& job_file,
                                       const std::vector<std::string>& overrides,
                                       const launcher::RunOptions& options);

// The same of a job.toml that is in memory; `job_file` is where it would be.
[[nodiscard]] Result<Prepared> prepare_text(transport::Context& context, const std::string& text,
                                            const std::string& job_file,
                                            const std::vector<std::string>& overrides,
                                            const launcher::RunOptions& options);

// Whether the job daemon will be able to serve metrics where job.toml says.
[[nodiscard]] Status check_metrics_address(const launcher::JobConfig& config);

// For a run that goes on: its hosts whose agents do not answer. kUnreachable if none of them does.
[[nodiscard]] Result<std::vector<std::string>> absent_hosts(const launcher::JobConfig& config);

// Finds the full paths of the user's programs that run beside the job daemon on this machine: the
// one that decides, and the one that is told events.
[[nodiscard]] Status find_own_programs(launcher::JobConfig& config);

// "w0 .. w3 on 10.0.0.1:7700": one line for each host of the workers, then of the servers.
[[nodiscard]] std::vector<std::string> placement_lines(const Prepared& prepared);

// Builds the data's index, unless it exists. Returns the text of RUN/data.json.
[[nodiscard]] Result<std::string> index_data(const launcher::JobConfig& config);

}  // namespace antdt::cli
