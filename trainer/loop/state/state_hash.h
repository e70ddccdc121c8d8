// Whether members have the same training state: one number of all its bytes.
#pragma once

#include <cstdint>
#include <functional>

#include "core/ids.h"
#include "trainer/loop/engine.h"

namespace antdt::trainer {

// Is told after each piece how many bytes were looked at, and how many there are.
using Hashed = std::function<void(std::uint64_t bytes, std::uint64_t of_all)>;

// Of the engine's state parts and the step (XXH3, piece by piece). Members of one generation
// compare it; it is kept nowhere.
[[nodiscard]] std::uint64_t state_hash(Engine& engine, Step step, const Hashed& hashed = nullptr);

}  // namespace antdt::trainer
