// A checkpoint as a job has it, for tests that write and read it at once.
#pragma once

#include <gtest/gtest.h>

#include "core/checkpoint/checkpoint_file.h"
#include "core/os/fs.h"
#include "tests/trainer/manifest.h"
#include "trainer/loop/engine.h"

namespace antdt::trainer {

inline Result<std::vector<wire::CheckpointFile>> save_state(const Engine& engine,
                                                            const std::string& directory,
                                                            Step step) {
  std::vector<wire::CheckpointFile> files;
  for (const StateFile& file : engine.state_files(step)) {
    ANTDT_TRY(auto writer, CheckpointFileWriter::create(directory, file.name));
    writer.write(file.text);
    for (const auto& part : file.parts) {
      writer.write({reinterpret_cast<const char*>(part.data()), part.size()});
    }
    ANTDT_TRY(files.emplace_back(), writer.finish());
  }
  ANTDT_RETURN_IF_ERROR(write_manifest(directory, step, files));
  return files;
}

inline Result<Step> load_state(Engine& engine, const std::string& directory) {
  ANTDT_TRY(CheckpointReader files, CheckpointReader::open(directory));
  return engine.load(files);
}

}  // namespace antdt::trainer
