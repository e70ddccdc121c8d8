// Reads a checkpoint into place, and checks on the way that it is as its MANIFEST.json says.
//
// What lies in a place before its checksum was compared counts for nothing: whoever reads into
// the state that it trains has none until the last file was read without an error.
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
// MANIFEST.json in `directory`; kCorrupt when it is not there or is none.
[[nodiscard]] Result<CheckpointManifest> read_checkpoint_manifest(const std::string& directory);

class CheckpointReader {
 public:
  // Is told of each part that was read, how many bytes it has; false gives the reading up,
  // with an error of kind kAborted.
  using Progress = std::function<bool(std::uint64_t bytes)>;

  [[nodiscard]] static Result<CheckpointReader> open(std::string directory,
                                                     Progress progress = nullptr);

  [[nodiscard]] const std::string& directory() const { return directory_; }
  // Of all files that the manifest names.
  [[nodiscard]] std::uint64_t total_bytes() const;

  // A small file (16 MiB at most) as a whole. Errors of both name the file: kCorrupt for what is
  // not as the manifest says, kIo for what cannot be read.
  [[nodiscard]] Result<std::string> text(const std::string& name);
  // A file that is these parts one after another, no byte more or less.
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
