// Passes the training state on inside a new generation, as the members' machines decide
// (trainer/worker/member/heal_plan.h): sends the bytes of an engine's parts over the collective,
// from device to device if the plan says that all have them there and the collective can.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "trainer/collective/collective.h"
#include "trainer/loop/engine.h"
#include "trainer/loop/state/state_hash.h"
#include "trainer/worker/member/effects.h"

namespace antdt::trainer {

// The slots of all members, by rank. All members of `collective` call it at the same moment.
[[nodiscard]] Result<std::vector<worker::HealSlot>> compare_states(
    Collective& collective, Engine& engine, const worker::CompareStates& own);

// Called after each piece that was received, with the bytes so far and the total.
using Received = std::function<void(std::uint64_t bytes, std::uint64_t of_all)>;
// Receives the state, passes it on, or both; returns the metadata that came before the parts. After
// an error, a member that keeps its own state has it unchanged; any other may have a mixture.
[[nodiscard]] Result<std::string> pass_state(Collective& collective, Engine& engine,
                                             const worker::PassState& pass,
                                             const Received& received = nullptr);

// The hash by which members compare their states: state_hash, or device_state_hash if it says so.
// An error if a device has no memory for it.
[[nodiscard]] Result<std::uint64_t> hash_of_state(Engine& engine, const worker::HashState& of,
                                                  const Hashed& hashed = nullptr);

// The hash of this member's state, and whether the state is that of rank 0 in place of its own.
struct SettledHash {
  std::uint64_t hash = 0;
  bool replaced = false;
};
// Members whose state differs from that of rank 0 receive that one. `own`: the hash of this
// member's. All members of `collective` call it at the same moment.
[[nodiscard]] Result<SettledHash> settle_differences(Collective& collective, Engine& engine,
                                                     const worker::HashState& of, std::uint64_t own,
                                                     const Received& received = nullptr);

}  // namespace antdt::trainer
