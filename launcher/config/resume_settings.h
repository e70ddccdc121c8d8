// `antdt run --resume RUN --set KEY=VALUE`: what of a run's configuration may be changed before
// it goes on.
//
// What decides which records are trained, in which order and into which model cannot: the
// journal and the checkpoints go by it. What is left is how long somebody is waited for, what is
// kept, who decides, where it runs, and the learning rate.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "launcher/config/job_config.h"

namespace antdt::launcher {

struct ChangedSetting {
  std::string key;     // "failure.hang_after"
  std::string before;  // as TOML; empty: there was none
  std::string after;
};

struct ChangedConfig {
  JobConfig config;
  std::vector<ChangedSetting> changes;  // what differs, by key; a value that is the same is none
};

// Why this key of job.toml cannot be changed when a run is resumed; empty: it can.
[[nodiscard]] std::string_view why_fixed(std::string_view key);

// The error (kUsage) names the key and why it is fixed, or lists what is wrong with the values.
[[nodiscard]] Result<ChangedConfig> change_settings(const JobConfig& before,
                                                    const std::vector<std::string>& overrides);

// Makes it the run's effective configuration: job.json and effective.toml. Those that were are
// kept beside them, as job.N.json and effective.N.toml. Durable when it returns; whoever dies on
// the way leaves the old ones in force or the new ones.
[[nodiscard]] Status write_effective(const std::string& run_dir, const JobConfig& config);

// "failure.hang_after from "2m" to "5s", …": for people.
[[nodiscard]] std::string text_of(const std::vector<ChangedSetting>& changes);

}  // namespace antdt::launcher
