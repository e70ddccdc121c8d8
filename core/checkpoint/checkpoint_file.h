// A file of a checkpoint: its size and checksum go to the job daemon, which
// calls the checkpoint whole only when every file is there as it was told.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/os/fs.h"
#include "core/result.h"
#include "core/wire/training_messages.h"

namespace antdt {

class CheckpointFileWriter {
 public:
  // `name` in `directory`, for its owner alone.
  [[nodiscard]] static Result<CheckpointFileWriter> create(const std::string& directory,
                                                           const std::string& name);
  CheckpointFileWriter(CheckpointFileWriter&&) noexcept;
  ~CheckpointFileWriter();  // unless finished, nothing stays

  void write(std::string_view bytes);  // an error is kept for finish()
  void sync();                         // what was written so far; likewise
  // Synced and renamed into place.
  [[nodiscard]] Result<wire::CheckpointFile> finish();

 private:
  struct Checksum;
  CheckpointFileWriter(std::string name, FileWriter file);
  std::string name_;
  FileWriter file_;
  std::unique_ptr<Checksum> checksum_;
};

[[nodiscard]] Result<wire::CheckpointFile> write_checkpoint_file(const std::string& directory,
                                                                 const std::string& name,
                                                                 std::string_view bytes);

}  // namespace antdt
