// The training state on disk: state.json describes it, and state.bin contains it.
//
// state.bin is the arrays one after another, little-endian float32. state.json
// has "schema", "step", "optimizer_steps", "floats" (of each array), "arrays"
// (their names, in order) and "parameters" (name, sizes and first float of
// each in every array), so that other programs can read it. Where the model has buffers,
// buffers.bin holds them one after another, and "buffers" has name, dtype, sizes and first byte
// of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "trainer/loop/engine.h"
#include "trainer/torch/parameters.h"

namespace antdt::trainer {

struct StateArray {
  std::string name;
  std::span<float> values;
};
struct StateEntry {
  std::string name;
  std::vector<std::int64_t> sizes;
  std::size_t first = 0;
};
struct StateBuffer {
  std::string name;
  std::string dtype;  // as libantdt calls it: "float32"
  std::vector<std::int64_t> sizes;
  std::span<std::byte> bytes;
};
struct StateCounters {
  Step step;
  std::uint64_t optimizer_steps = 0;
};

// Where the parameters lie in each array.
[[nodiscard]] std::vector<StateEntry> layout(const FlatParameters& parameters);
// The files; state.bin lies in `arrays`, and buffers.bin in `buffers`.
[[nodiscard]] std::vector<StateFile> state_files(const StateCounters& counters,
                                                 const std::vector<StateEntry>& entries,
                                                 const std::vector<StateArray>& arrays,
                                                 const std::vector<StateBuffer>& buffers = {});

// Fills `arrays` and `buffers`. kCorrupt if the files are damaged or belong to another model. After
// an error the content of the arrays is not a valid state.
[[nodiscard]] Result<StateCounters> read_state(CheckpointReader& files,
                                               const std::vector<StateEntry>& entries,
                                               const std::vector<StateArray>& arrays,
                                               const std::vector<StateBuffer>& buffers = {});

}  // namespace antdt::trainer
