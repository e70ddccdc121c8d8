// The job's configuration as its parts need it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "ctl/controller.h"
#include "ctl/job/job_machine.h"
#include "ctl/lifecycle.h"
#include "launcher/job_config.h"
#include "shard_server/stream.h"

namespace antdt::jobd {

// What the launcher found in the data (RUN/data.json).
struct DataFound {
  std::uint64_t train_records = 0;
  std::uint64_t eval_records = 0;
  std::string fingerprint;
};
[[nodiscard]] Result<DataFound> load_data_found(const std::string& run_dir);

[[nodiscard]] Result<ctl::JobSpec> job_spec(const launcher::JobConfig& config,
                                            const DataFound& data);
[[nodiscard]] Result<ctl::ControllerConfig> controller_config(const launcher::JobConfig& config);

// Of the training data, and of the evaluation data.
[[nodiscard]] shard_server::DataSet train_set(const launcher::JobConfig& config,
                                              const DataFound& data);
[[nodiscard]] shard_server::DataSet eval_set(const launcher::JobConfig& config,
                                             const DataFound& data);

// All of it, for a new run.
[[nodiscard]] Result<ctl::JobMachineConfig> machine_config(const launcher::JobConfig& config,
                                                           const DataFound& data);

}  // namespace antdt::jobd
