// Checks of checkpoints on disk, used by the job daemon and by commands that look at a run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint_reader.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/wire/training_messages.h"

namespace antdt::jobd {

// The names in RUN/checkpoints in the order of lineage and step, whether or not the content is
// valid. kIo if they cannot be listed.
[[nodiscard]] Result<std::vector<std::string>> checkpoint_names(const std::string& checkpoints);

using Manifest = CheckpointManifest;

// The present size and checksum of a file; kIo if it cannot be read. `fd`: an open descriptor,
// which is read from its beginning; `name` is the file's name in the answer.
[[nodiscard]] Result<wire::CheckpointFile> sum_file(const std::string& directory,
                                                    const std::string& name,
                                                    const std::function<void()>& progress = {});
[[nodiscard]] Result<wire::CheckpointFile> sum_file(int fd, const std::string& name,
                                                    const std::function<void()>& progress = {});
// Whether the file agrees with the manifest; kCorrupt tells the difference.
[[nodiscard]] Status check_sum(const wire::CheckpointFile& said, const wire::CheckpointFile& found);

// The manifest. kCorrupt if it is malformed, or if it or a file that it names is missing.
[[nodiscard]] Result<Manifest> check_names(const std::string& directory);

// Reads every file of a checkpoint. kCorrupt says what is damaged: a file that is missing or
// differs from MANIFEST.json, or the manifest itself. kIo for a file that is there and cannot be
// read, which tells nothing of its content: a file server may be away. `progress` is called again
// and again while the disk answers.
[[nodiscard]] Result<Manifest> check_checkpoint(const std::string& directory,
                                                const std::function<void()>& progress = {});

}  // namespace antdt::jobd
