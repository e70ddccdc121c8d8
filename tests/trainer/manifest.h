// MANIFEST.json, which the job daemon adds to the files of a checkpoint.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/os/fs.h"
#include "core/wire/training_messages.h"

namespace antdt {

inline Status write_manifest(const std::string& directory, Step step,
                             const std::vector<wire::CheckpointFile>& files) {
  nlohmann::json manifest{{"schema", 1}, {"step", step.value}, {"files", nlohmann::json::array()}};
  for (const wire::CheckpointFile& file : files) {
    manifest["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3", file.xxh3}});
  }
  return write_file_atomic(directory + "/MANIFEST.json", manifest.dump());
}

}  // namespace antdt
