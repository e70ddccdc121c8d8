// The training state on disk: state.json says what there is, state.bin holds it.
//
// state.bin is the arrays one after another, little-endian float32. state.json
// has "schema", "step", "optimizer_steps", "floats" (of each array), "arrays"
// (their names, in order) and "parameters" (name, sizes and first float of
// each in every array), so that other programs can read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "trainer/loop/engine.h"

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
struct StateCounters {
  Step step;
  std::uint64_t optimizer_steps = 0;
};

// Both files; state.bin lies in `arrays`.
[[nodiscard]] std::vector<StateFile> state_files(const StateCounters& counters,
                                                 const std::vector<StateEntry>& entries,
                                                 const std::vector<StateArray>& arrays);

// Fills `arrays`. kCorrupt when the files are damaged or of another model; what the arrays hold
// then is no state, if state.bin had been begun.
[[nodiscard]] Result<StateCounters> read_state(CheckpointReader& files,
                                               const std::vector<StateEntry>& entries,
                                               const std::vector<StateArray>& arrays);

}  // namespace antdt::trainer
