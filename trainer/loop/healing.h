// Handing the training state over inside a new generation, to the members that
// lack it.
//
// A member lacks the state when it is new, and when it is a step behind: a
// collective may break after one member has completed a step that another has
// not. The whole state is sent in both cases. Keeping the last reduced gradient,
// so that a member one step behind could apply it itself, would cost as much
// memory as the gradients for all of the training, to save one transfer at a
// time when a newcomer needs one anyway.
//
// The state flows to the right along the ring: each member that lacks it
// receives from its left neighbour and passes on to its right one if that lacks
// it too, chunk by chunk, so that a chain of them is a pipeline.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "trainer/collective/collective.h"
#include "trainer/loop/engine.h"
#include "trainer/loop/training_state.h"

namespace antdt::trainer {

// What every member tells the others about its state.
struct HealSlot {
  bool has_state = false;  // as it was after `step` in the base generation
  Step step;
  std::uint64_t meta_bytes = 0;  // of what goes before the parts
  std::uint64_t parts = 0;       // number of the engine's parts
  std::uint64_t part_bytes = 0;  // of all of them
  std::uint64_t part_sizes = 0;  // a hash of their sizes
};

struct HealPlan {
  Step step;                     // where everybody stands afterwards: the furthest of all
  bool receives = false;         // from the rank before
  bool sends = false;            // to the rank after, what this member has or receives
  std::uint64_t meta_bytes = 0;  // of what it has or receives
};

// What the member of `rank` does. Pure, and from the same slots on every member.
// An error when nobody has the state, or when the engines' parts differ.
[[nodiscard]] Result<HealPlan> heal_plan(std::span<const HealSlot> slots, std::uint32_t rank);

// Every member of `collective` calls it once, before the first step. Afterwards
// all are at the same step with the same state. `has_state`: this member holds
// the state that goes on, which is the one of generation `base`.
//
// A member that is behind keeps its own state until the other is there whole: if
// the source dies meanwhile, the others go on from where they are. That needs
// the state's size in memory once more for that time. A member without a state
// receives in place.
//
// `received` is told of each part that has come, with the bytes so far and those of all.
using Received = std::function<void(std::uint64_t bytes, std::uint64_t of_all)>;
[[nodiscard]] Status heal(Collective& collective, Engine& engine, TrainingState& state,
                          bool has_state, Generation base, const Received& received = nullptr);

}  // namespace antdt::trainer
