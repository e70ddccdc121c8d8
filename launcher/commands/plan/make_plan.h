// Measures a job, and plans how it should be synchronised.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/transport/socket.h"
#include "launcher/config/job_config.h"
#include "launcher/plan/measured.h"
#include "launcher/plan/predict.h"

namespace antdt::cli {

struct Planned {
  launcher::plan::Measured measured;
  launcher::plan::Plan plan;
  double seconds = 0;  // that measuring took
};

// Says what is being measured.
using Say = std::function<void(const std::string&)>;

// Why a plan cannot be made for this job; empty: it can.
[[nodiscard]] std::string why_not_planned(const launcher::JobConfig& config);

// `overrides` as for `antdt run --set`. Runs the job for a few seconds at a time, in directories of
// its own, which are removed. Errors (kUsage): such jobs cannot be planned, or it does not train.
[[nodiscard]] Result<Planned> make_plan(transport::Context& context, const std::string& job,
                                        const std::vector<std::string>& overrides, const Say& say);

// From the summary of an ended run: its own way of synchronisation alone.
[[nodiscard]] Result<Planned> plan_from_run(const std::string& run_dir);

}  // namespace antdt::cli
