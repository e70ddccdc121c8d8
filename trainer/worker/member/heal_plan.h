// Which member passes the training state to which inside a new generation. Pure.
//
// A member lacks the state if it is new, or if its replica is behind (sync::ReplicaVersion): a
// collective may break after one member has completed a step and before another has. The whole
// state is sent in both cases. The alternative is to keep the last reduced gradient, so that a
// member one step behind can apply it itself. That would cost as much memory as the gradients
// during all of training, to save one transfer at a time when a newcomer needs one anyway.
//
// The state flows along the ring: each member that lacks it receives it from its left neighbour,
// and passes it to its right neighbour if that lacks it, too, chunk by chunk, so that a chain of
// such members is a pipeline. All members do this once, before the first step. Afterwards all are
// at the same step with the same state.
//
// A member that is behind keeps its own state until the other has arrived completely: if the source
// dies before that, the others go on from their own states. For that time it needs memory for a
// second state, which is the host's. A member without a state receives in place.
//
// States that all lie in devices' memory are compared there, and passed on from device to device
// where the collective can. The numbers that members compare are then others, so all must do so.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "trainer/sync/replica_version.h"

namespace antdt::worker {

// What every member tells the others about its state.
struct HealSlot {
  bool has_state = false;  // it has the state that goes on, as it was after `step`
  Step step;
  std::uint64_t meta_bytes = 0;  // size of the metadata before the parts
  std::uint64_t parts = 0;       // number of the model's parts
  std::uint64_t part_bytes = 0;  // size of all of them
  std::uint64_t part_sizes = 0;  // a hash of their sizes
  // The generation in which the members made their replicas of this state equal, if no step was
  // applied since; 0: replicas of members at the same step may differ.
  Generation consolidated = {};
  bool on_device = false;  // the parts lie in a device's memory

  [[nodiscard]] sync::ReplicaVersion version() const { return {step, consolidated}; }
};

// The ranks of the members whose state goes on; empty: none has it.
[[nodiscard]] std::vector<std::uint32_t> holders_of(std::span<const HealSlot> slots);

struct HealPlan {
  sync::ReplicaVersion version;  // that of all members afterwards: the furthest of all
  bool receives = false;         // from the previous rank
  bool sends = false;            // to the next rank, what this member has or receives
  std::uint64_t meta_bytes = 0;  // size of the metadata that it has or receives
  bool on_device = false;        // the parts of all members lie in devices' memory
};

// What the member of `rank` does, computed from the same slots on every member. An error if no
// member has the state, or if the models' parts differ.
[[nodiscard]] Result<HealPlan> heal_plan(std::span<const HealSlot> slots, std::uint32_t rank);

// The same where all members are at the same step and their states differ in bits: each whose hash
// is not that of rank 0 receives that state. `hashes` are the members', by rank.
[[nodiscard]] HealPlan settle_plan(std::span<const std::uint64_t> hashes, std::uint32_t rank,
                                   bool on_device);

}  // namespace antdt::worker
