// Reads a checkpoint into memory, and checks on the way that it agrees with its MANIFEST.json.
//
// Before the checksum is compared, the bytes that were read are worthless. A caller that reads into
// its training state has no valid state until the last file was read without an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/training_messages.h"

namespace antdt {

struct CheckpointManifest {
  Step step;
  std::vector<wire::CheckpointFile> files;  // names without a directory
};
// Reads MANIFEST.json in `directory`; kIo if it cannot be read, kCorrupt if it is malformed.
[[nodiscard]] Result<CheckpointManifest> read_checkpoint_manifest(const std::string& directory);

class CheckpointReader {
 public:
  // Called with the number of bytes after each part; if it returns false, reading ends with an
  // error of kind kAborted.
  using Progress = std::function<bool(std::uint64_t bytes)>;

  [[nodiscard]] static Result<CheckpointReader> open(std::string directory,
                                                     Progress progress = nullptr);

  [[nodiscard]] const std::string& directory() const { return directory_; }
  // Size of all files that the manifest names.
  [[nodiscard]] std::uint64_t total_bytes() const;

  // Reads a small file (16 MiB at most) as a whole. Errors of both functions name the file:
  // kCorrupt if it differs from the manifest, kIo if it cannot be read.
  [[nodiscard]] Result<std::string> text(const std::string& name);
  // Reads a file into these parts, one after another. The file must have exactly their size.
  [[nodiscard]] Status into(const std::string& name, std::span<const std::span<std::byte>> parts);

 private:
  CheckpointReader(std::string directory, CheckpointManifest manifest, Progress progress)
      : directory_(std::move(directory)),
        manifest_(std::move(manifest)),
        progress_(std::move(progress)) {}
  [[nodiscard]] Result<const wire::CheckpointFile*> said_of(const std::string& name) const;

  std::string directory_;
  CheckpointManifest manifest_;
  Progress progress_;
};

}  // namespace antdt
