// Exports a model from a checkpoint for other programs. docs/model-export.md has the format.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "core/ids.h"
#include "core/result.h"
#include "launcher/model/model_content.h"

namespace antdt::cli {

struct ModelOrigin {
  std::string job;         // id
  std::string model;       // trainer.model
  std::string checkpoint;  // name of the checkpoint
  Step step;
};

// Writes the arrays and index.json into the existing `directory`, and returns the content of
// index.json. Memory use follows the longest row, not the number of rows. `stopped` is called every
// few megabytes; when it returns true, the error is kAborted.
[[nodiscard]] Result<nlohmann::ordered_json> write_model(const CheckpointFiles& files,
                                                         const ModelContent& content,
                                                         const ModelOrigin& origin,
                                                         const std::string& directory,
                                                         const std::function<bool()>& stopped);

// Size of all the arrays that write_model() would write.
[[nodiscard]] std::uint64_t model_bytes(const ModelContent& content);

}  // namespace antdt::cli
