// Checkpoints as they lie on disk, for whoever reads them: the job daemon, and
// commands that look at a run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint_reader.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/wire/training_messages.h"

namespace antdt::jobd {

// The names in RUN/checkpoints by rising lineage and step, whatever is in them.
[[nodiscard]] std::vector<std::string> checkpoint_names(const std::string& checkpoints);

using Manifest = CheckpointManifest;

// Size and checksum of what is in a file now; kIo when it cannot be read. `fd`:
// one that is open, from its beginning; `name` is its name in the answer.
[[nodiscard]] Result<wire::CheckpointFile> sum_file(const std::string& directory,
                                                    const std::string& name,
                                                    const std::function<void()>& progress = {});
[[nodiscard]] Result<wire::CheckpointFile> sum_file(int fd, const std::string& name,
                                                    const std::function<void()>& progress = {});
// Whether it is as the manifest says; kCorrupt tells the difference.
[[nodiscard]] Status check_sum(const wire::CheckpointFile& said, const wire::CheckpointFile& found);

// Reads every file of a checkpoint. An error (kCorrupt) says what is damaged: a
// file that is not as its MANIFEST.json says, or the manifest itself. `progress` is called
// again and again while the disk answers.
[[nodiscard]] Result<Manifest> check_checkpoint(const std::string& directory,
                                                const std::function<void()>& progress = {});

}  // namespace antdt::jobd
