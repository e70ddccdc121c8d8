// Checkpoints as they lie on disk, for whoever reads them: the job daemon, and
// commands that look at a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace antdt::jobd {

struct FileSum {
  std::uint64_t bytes = 0;
  std::string xxh3;  // 16 hexadecimal digits
};
[[nodiscard]] Result<FileSum> sum_file(const std::string& path);

// The names in RUN/checkpoints by rising lineage and step, whatever is in them.
[[nodiscard]] std::vector<std::string> checkpoint_names(const std::string& checkpoints);

struct WholeCheckpoint {
  Step step;
  std::vector<std::string> files;  // of MANIFEST.json, names without a directory
};
// Reads every file of a checkpoint. An error (kCorrupt) says what is damaged: a
// file that is not as its MANIFEST.json says, or the manifest itself.
[[nodiscard]] Result<WholeCheckpoint> check_checkpoint(const std::string& directory);

}  // namespace antdt::jobd
