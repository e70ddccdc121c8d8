// The content of a checkpoint's model, and where its floats are in the checkpoint's files. The
// floats themselves are not read: the size of this description follows the number of parameters and
// of slices, not of rows.
//
// Four kinds of checkpoints are known: state.json and state.bin of training by all-reduce
// (trainer/torch/state_file.h), tally.f32 (trainer/tally/tally_engine.h), parts.json and parts.bin
// of programs on libantdt (trainer/c_api/program/state_parts.h), and slice-NN.rows of parameter
// servers (trainer/ps/rows/slice_image.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "launcher/model/model_files.h"
#include "launcher/model/model_npy.h"

namespace antdt::cli {

// Little-endian numbers in C order.
struct ParameterPlace {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::vector<Extent> values;  // in this order; together as many as the shape says
  NpyType type = NpyType::kFloat32;
};

// Each row is a u64 key, `width` values, and `state` floats of the optimizer.
struct TablePlace {
  std::string name;
  std::uint32_t width = 0;
  std::uint32_t state = 0;
  std::uint64_t rows = 0;
  std::vector<Extent> parts;  // whole rows, unordered

  [[nodiscard]] std::uint64_t row_bytes() const { return 8 + 4 * (std::uint64_t{width} + state); }
};

struct ModelContent {
  std::vector<ParameterPlace> parameters;
  std::vector<TablePlace> tables;
};

// kUsage: the files belong to a program with a checkpoint format of its own. kCorrupt: the bytes
// cannot be what was written; the error names the file.
[[nodiscard]] Result<ModelContent> content_of(const CheckpointFiles& files);

// The part of content_of() for parameter servers. The table "dense" becomes one parameter: its rows
// in the order of their keys 0, 1, ….
[[nodiscard]] Result<ModelContent> content_of_slices(const CheckpointFiles& files);

}  // namespace antdt::cli
