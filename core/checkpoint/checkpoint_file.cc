#include "core/checkpoint/checkpoint_file.h"

#include <xxhash.h>

namespace antdt {

struct CheckpointFileWriter::Checksum {
  Checksum() : state(XXH3_createState()) { XXH3_64bits_reset(state); }
  ~Checksum() { XXH3_freeState(state); }
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;
  XXH3_state_t* state;
};

CheckpointFileWriter::CheckpointFileWriter(std::string name, FileWriter file)
    : name_(std::move(name)), file_(std::move(file)), checksum_(std::make_unique<Checksum>()) {}
CheckpointFileWriter::CheckpointFileWriter(CheckpointFileWriter&&) noexcept = default;
CheckpointFileWriter::~CheckpointFileWriter() = default;

Result<CheckpointFileWriter> CheckpointFileWriter::create(const std::string& directory,
                                                          const std::string& name) {
  ANTDT_TRY(FileWriter file, FileWriter::create(directory + "/" + name, 0600));
  return CheckpointFileWriter(name, std::move(file));
}

void CheckpointFileWriter::write(std::string_view bytes) {
  XXH3_64bits_update(checksum_->state, bytes.data(), bytes.size());
  file_.write(bytes);
}

void CheckpointFileWriter::sync() { file_.sync(); }

Result<wire::CheckpointFile> CheckpointFileWriter::finish() {
  ANTDT_RETURN_IF_ERROR(file_.finish());
  return wire::CheckpointFile{name_, file_.bytes(),
                              fmt::format("{:016x}", XXH3_64bits_digest(checksum_->state))};
}

Result<wire::CheckpointFile> write_checkpoint_file(const std::string& directory,
                                                   const std::string& name,
                                                   std::string_view bytes) {
  ANTDT_TRY(auto writer, CheckpointFileWriter::create(directory, name));
  writer.write(bytes);
  return writer.finish();
}

}  // namespace antdt
