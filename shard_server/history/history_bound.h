// Keeps the history of steps within a size by dropping the oldest entries (history.h).
#pragma once

#include <cstdint>

#include "core/result.h"
#include "shard_server/journal/sqlite.h"

namespace antdt::shard_server {

// Bytes that the database uses. Space of deleted rows is not counted, because it is used again.
[[nodiscard]] Result<std::uint64_t> used_bytes(Database& database);

// Forgets the oldest generation with its grants and steps. If there is only one generation, forgets
// the grants and steps of its first quarter. What is left answers as before, and meta's
// 'forgotten_step' holds the last step that was forgotten. Runs inside a transaction of the caller.
[[nodiscard]] Status forget_oldest(Database& database);

}  // namespace antdt::shard_server
