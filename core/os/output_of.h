// Runs a short command of the system and returns what it writes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"

namespace antdt {

// What `command` writes to its outputs, at most `most_bytes`, without a newline at the end. An
// error if it cannot be executed, has not ended within `patience` (it is killed then), or ends
// otherwise than with code 0: the message has what it wrote.
[[nodiscard]] Result<std::string> output_of(const std::vector<std::string>& command,
                                            Duration patience, std::size_t most_bytes = 64 << 10);

}  // namespace antdt
