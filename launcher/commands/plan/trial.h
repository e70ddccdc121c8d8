// A trial: the job itself, trained for a few seconds on one host under one way of synchronisation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/job_report.h"
#include "core/result.h"
#include "launcher/config/job_config.h"
#include "launcher/plan/measured.h"

namespace antdt::cli {

// The job of all trials of a plan.
struct TriedJob {
  std::string job;                     // job.toml
  std::vector<std::string> overrides;  // as for `antdt run --set`
  launcher::JobConfig config;          // what both say
  std::string host;                    // "address:port" of an agent; empty: this machine
  bool tcp = false;                    // members exchange tensors over tcp, though on one host
  // The domain of each worker on the host of the trials, if job.toml has domains that trials keep.
  std::vector<std::string> domains = {};
};

struct WantedTrial {
  launcher::plan::Strategy strategy{};
  std::uint32_t workers = 1;
  std::uint32_t servers = 0;
  std::uint64_t batch = 1;  // samples of each worker
};

// The job's overrides and those of every trial: no drills, evaluation, periodic checkpoints, hooks
// and metrics, and no setting that only some ways of synchronisation allow.
[[nodiscard]] std::vector<std::string> settings_of_trials(std::vector<std::string> overrides);

// Why the job cannot be trained under this way; empty: it can.
[[nodiscard]] std::string why_impossible(const TriedJob& job, const WantedTrial& wanted);

struct Tried {
  launcher::plan::Trial trial;
  // Of the checkpoint with which an all-reduce ends; without entries if it has another format.
  launcher::plan::ModelSize model;
  launcher::plan::UpdateSizes updates;  // of a trial of gaia
};
// What a message that was not whole had of a dense one's bytes, of these workers' messages. Pure.
// Empty: there was none.
[[nodiscard]] std::optional<double> share_of_messages(
    const std::vector<report::WorkerSummary>& workers);
// Runs it in `directory`/<name>, and stops it after about two seconds of training. Without drills,
// evaluation, checkpoints, hooks and metrics. The error says why it did not train, with the end of
// what it printed.
[[nodiscard]] Result<Tried> try_out(const TriedJob& job, const WantedTrial& wanted,
                                    const std::string& directory);

// The sums of gradients that a step makes, from state.json of a checkpoint. Pure. The table is the
// parameter "table".
[[nodiscard]] Result<launcher::plan::ModelSize> size_of_model(const std::string& state_json);

}  // namespace antdt::cli
