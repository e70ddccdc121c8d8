// A file of a checkpoint. Its size and checksum are reported to the job daemon, which accepts the
// checkpoint only when every file is as reported.
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
  // Makes `name` in `directory`, readable by its owner alone.
  [[nodiscard]] static Result<CheckpointFileWriter> create(const std::string& directory,
                                                           const std::string& name);
  CheckpointFileWriter(CheckpointFileWriter&&) noexcept;
  ~CheckpointFileWriter();  // removes the file, unless it is finished

  void write(std::string_view bytes);  // finish() returns the error, if any
  void sync();  // syncs what was written so far; finish() returns the error, if any
  // Syncs the file and renames it into place.
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
