// A model out of a checkpoint, for programs that know nothing of AntDT:
// docs/model-export.md has the format.
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
  std::string checkpoint;  // its name
  Step step;
};

// Writes the arrays and index.json into `directory`, which is there; answers what
// index.json says. Memory follows the longest row, not the number of rows.
// `stopped` is asked every few megabytes: kAborted when it says so.
[[nodiscard]] Result<nlohmann::ordered_json> write_model(const CheckpointFiles& files,
                                                         const ModelContent& content,
                                                         const ModelOrigin& origin,
                                                         const std::string& directory,
                                                         const std::function<bool()>& stopped);

// Of all the arrays that write_model() would write.
[[nodiscard]] std::uint64_t model_bytes(const ModelContent& content);

}  // namespace antdt::cli
