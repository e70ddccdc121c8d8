#include "trainer/loop/checkpoint.h"

#include <filesystem>

#include "core/fs.h"

namespace antdt::trainer {
namespace {

Result<std::vector<wire::CheckpointFile>> write_files(const Engine& engine,
                                                      const std::string& directory, Step step) {
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);  // of an earlier try that was cut short
  ANTDT_RETURN_IF_ERROR(make_directories(directory, 0700));
  ANTDT_TRY(auto files, engine.save(directory, step));
  ANTDT_RETURN_IF_ERROR(sync_directory(directory));
  return files;
}

}  // namespace

wire::CheckpointWritten write_checkpoint(const Engine& engine, const std::string& run_dir,
                                         Step step, antdt::Member member) {
  wire::CheckpointWritten written;
  written.step = step;
  written.directory =
      fmt::format("{}/checkpoints/.tmp-{}-{}.{}", run_dir, step, member.worker, member.attempt);
  auto files = write_files(engine, written.directory, step);
  if (files) {
    written.files = std::move(*files);
    return written;
  }
  written.error = files.error().message;
  std::error_code ignored;
  std::filesystem::remove_all(written.directory, ignored);
  return written;
}

}  // namespace antdt::trainer
