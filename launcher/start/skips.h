// RUN/skips.json: the records that an operator lets the job go on without.
//
// It is written by `antdt data skip` for a run that has ended, and by the job daemon. It is kept
// for the life of the run, because a checkpoint may be older than a skip: the job daemon declares
// each skip again in every lineage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::launcher {

struct Skip {
  std::uint32_t epoch = 0;  // from 0
  std::uint64_t from = 0;   // positions [from, to) of its training stream
  std::uint64_t to = 0;
  std::string reason;
  std::string who;
  std::uint64_t lineage = 0;  // the lineage in which it was last declared; 0: not yet
};

// Empty if there is no file; kCorrupt if it cannot be read.
[[nodiscard]] Result<std::vector<Skip>> read_skips(const std::string& run_dir);
[[nodiscard]] Status write_skips(const std::string& run_dir, const std::vector<Skip>& skips);

struct SkipRange {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};
// Parses "1200:1300". kUsage for anything else, and for an empty range.
[[nodiscard]] Result<SkipRange> parse_skip_range(const std::string& text);

}  // namespace antdt::launcher
