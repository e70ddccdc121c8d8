// Who hands the training state to whom inside a new generation. Pure.
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
// it too, chunk by chunk, so that a chain of them is a pipeline. Everybody does it once, before
// the first step. Afterwards all are at the same step with the same state.
//
// A member that is behind keeps its own state until the other is there whole: if
// the source dies meanwhile, the others go on from where they are. That needs
// the state's size in memory once more for that time. A member without a state
// receives in place.
#pragma once

#include <cstdint>
#include <span>

#include "core/ids.h"
#include "core/result.h"

namespace antdt::worker {

// What every member tells the others about its state.
struct HealSlot {
  bool has_state = false;  // the one that goes on, as it was after `step`
  Step step;
  std::uint64_t meta_bytes = 0;  // of what goes before the parts
  std::uint64_t parts = 0;       // number of the model's parts
  std::uint64_t part_bytes = 0;  // of all of them
  std::uint64_t part_sizes = 0;  // a hash of their sizes
};

struct HealPlan {
  Step step;                     // where everybody stands afterwards: the furthest of all
  bool receives = false;         // from the rank before
  bool sends = false;            // to the rank after, what this member has or receives
  std::uint64_t meta_bytes = 0;  // of what it has or receives
};

// What the member of `rank` does, from the same slots on every member.
// An error when nobody has the state, or when the models' parts differ.
[[nodiscard]] Result<HealPlan> heal_plan(std::span<const HealSlot> slots, std::uint32_t rank);

}  // namespace antdt::worker
