// Handing the training state over inside a new generation, as the members' machines want it
// (trainer/worker/member/heal_plan.h): the bytes of an engine's parts over the collective.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "trainer/collective/collective.h"
#include "trainer/loop/engine.h"
#include "trainer/worker/member/effects.h"

namespace antdt::trainer {

// Everybody's slot, by rank. Every member of `collective` calls it at the same moment.
[[nodiscard]] Result<std::vector<worker::HealSlot>> compare_states(
    Collective& collective, Engine& engine, const worker::CompareStates& own);

// Is told of each piece that has come, with the bytes so far and those of all.
using Received = std::function<void(std::uint64_t bytes, std::uint64_t of_all)>;
// Receives the state, passes it on, or both; what was before the parts of the received one. After
// an error a member that keeps its own has it as it was; any other may have a mixture.
[[nodiscard]] Result<std::string> pass_state(Collective& collective, Engine& engine,
                                             const worker::PassState& pass,
                                             const Received& received = nullptr);

}  // namespace antdt::trainer
