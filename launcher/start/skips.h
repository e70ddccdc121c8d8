// RUN/skips.json: the records that an operator lets the job go on without.
//
// Written by `antdt data skip` for a run that has ended, and by the job daemon;
// kept for the life of the run, since a checkpoint may be older than a skip: the
// job daemon declares each again in every lineage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::launcher {

struct Skip {
  std::uint32_t epoch = 0;  // from 0, as in the audit
  std::uint64_t from = 0;   // positions [from, to) of its training stream
  std::uint64_t to = 0;
  std::string reason;
  std::string who;
  std::uint64_t lineage = 0;  // in which it was declared last; 0: not yet
};

// Empty where there is no file; kCorrupt for one that cannot be read.
[[nodiscard]] Result<std::vector<Skip>> read_skips(const std::string& run_dir);
[[nodiscard]] Status write_skips(const std::string& run_dir, const std::vector<Skip>& skips);

struct SkipRange {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};
// "1200:1300". kUsage for anything else, and for an empty range.
[[nodiscard]] Result<SkipRange> parse_skip_range(const std::string& text);

}  // namespace antdt::launcher
