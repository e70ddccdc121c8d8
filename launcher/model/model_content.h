// What a checkpoint holds of a model, and where in its files the floats lie. The
// floats themselves are not read: what is kept here follows the number of
// parameters and of slices, not of rows.
//
// Four kinds of checkpoints are known: state.json and state.bin of training by
// all-reduce (trainer/torch/state_file.h), tally.f32 (trainer/tally/tally_engine.h),
// parts.json and parts.bin of programs on libantdt (trainer/c_api/program/state_parts.h),
// and slice-NN.rows of parameter servers (trainer/ps/rows/slice_image.h).
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
  std::vector<Extent> values;  // one after another; together as many as the shape says
  NpyType type = NpyType::kFloat32;
};

// Each row is a u64 key, `width` values, and `state` floats of its optimizer.
struct TablePlace {
  std::string name;
  std::uint32_t width = 0;
  std::uint32_t state = 0;
  std::uint64_t rows = 0;
  std::vector<Extent> parts;  // whole rows, in no order

  [[nodiscard]] std::uint64_t row_bytes() const { return 8 + 4 * (std::uint64_t{width} + state); }
};

struct ModelContent {
  std::vector<ParameterPlace> parameters;
  std::vector<TablePlace> tables;
};

// kUsage: files of a program that keeps checkpoints of its own kind. kCorrupt:
// bytes that cannot be what was written; it names the file.
[[nodiscard]] Result<ModelContent> content_of(const CheckpointFiles& files);

// The part of content_of() for parameter servers. The table "dense" becomes one
// parameter: its rows one after another, in the order of their keys 0, 1, ….
[[nodiscard]] Result<ModelContent> content_of_slices(const CheckpointFiles& files);

}  // namespace antdt::cli
