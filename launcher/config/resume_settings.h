// `antdt run --resume RUN --set KEY=VALUE`: which settings of a run may be changed before it goes
// on.
//
// Settings that decide which records are trained, in which order and into which model cannot
// change, because the journal and the checkpoints depend on them. What may change is how long
// something is waited for, what is kept, who decides, where the run runs, and the learning rate.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "launcher/config/job_config.h"

namespace antdt::launcher {

struct ChangedSetting {
  std::string key;     // "failure.hang_after"
  std::string before;  // as TOML; empty: it had no value
  std::string after;
};

struct ChangedConfig {
  JobConfig config;
  // the differences, by key; a value that stays the same is not listed
  std::vector<ChangedSetting> changes;
};

// Why this key of job.toml cannot be changed when a run is resumed; empty if it can.
[[nodiscard]] std::string_view why_fixed(std::string_view key);

// The error (kUsage) names the key and why it is fixed, or lists what is wrong with the values. If
// the data grow, where they are and how many records they have may change, too.
[[nodiscard]] Result<ChangedConfig> change_settings(const JobConfig& before,
                                                    const std::vector<std::string>& overrides,
                                                    bool data_grow = false);

// Makes it the run's effective configuration: job.json and effective.toml. The previous files are
// kept beside them, as job.N.json and effective.N.toml. It is durable when this returns; if the
// process dies on the way, either the old files or the new ones are in force.
[[nodiscard]] Status write_effective(const std::string& run_dir, const JobConfig& config);

// "failure.hang_after from "2m" to "5s", …": for people.
[[nodiscard]] std::string text_of(const std::vector<ChangedSetting>& changes);

}  // namespace antdt::launcher
