// A run that was recorded, as a job that can be simulated: with its settings, or with some of them
// changed, at the speeds that its workers had.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/report/job_report.h"
#include "core/result.h"
#include "launcher/commands/simulate/fleet_job.h"
#include "launcher/config/job_config.h"
#include "sim/fleet/recorded_speeds.h"
#include "sim/fleet/what_if.h"

namespace antdt::cli {

struct RecordedRun {
  std::string run_dir;
  FleetJob job;                                // of the recorded workers
  fleet::RecordedSpeeds speeds;                // by number of a recorded worker
  std::vector<fleet::WorkerPace> workers;      // by number
  std::vector<launcher::DeviceEntry> devices;  // that the workers reported, one for each
  std::optional<report::Summary> summary;      // empty: the run has not ended
};

// `overrides` as for `antdt run --set`; `afterwards`: how fast the workers are after the end of the
// recording. The run may still be running. Errors (kUsage): there is no
// such run, it recorded nothing, or its job cannot be simulated with these settings.
[[nodiscard]] Result<RecordedRun> load_recorded(
    const std::string& run, const std::vector<std::string>& overrides = {},
    fleet::Afterwards afterwards = fleet::Afterwards::kAsAtItsEnd);

// The job with a worker like each of these recorded ones, in this order. The global batch and the
// data stay the same.
[[nodiscard]] FleetJob with_workers(const RecordedRun& run,
                                    const std::vector<std::uint32_t>& which);

// For `count` workers: the recorded ones, again and again.
[[nodiscard]] std::vector<std::uint32_t> repeated(std::uint32_t count, std::uint32_t recorded);

}  // namespace antdt::cli
