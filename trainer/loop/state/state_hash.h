// Whether members have the same training state: one hash of all its bytes.
#pragma once

#include <cstdint>
#include <functional>

#include "core/ids.h"
#include "trainer/loop/engine.h"

namespace antdt::trainer {

// Called after each piece with the bytes hashed so far and the total.
using Hashed = std::function<void(std::uint64_t bytes, std::uint64_t of_all)>;

// XXH3 of the engine's state parts and the step, piece by piece. Members of one generation compare
// it; it is stored nowhere.
[[nodiscard]] std::uint64_t state_hash(Engine& engine, Step step, const Hashed& hashed = nullptr);
// The same of a state in a device's memory, by its digests. Another number for the same state:
// members compare one or the other.
[[nodiscard]] Result<std::uint64_t> device_state_hash(DeviceState& state, Step step);

}  // namespace antdt::trainer
