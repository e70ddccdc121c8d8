// Keeps the history of steps within a size: what is oldest goes first (history.h).
#pragma once

#include <cstdint>

#include "core/result.h"
#include "shard_server/journal/sqlite.h"

namespace antdt::shard_server {

// Bytes of the database that are used; what was deleted is used again.
[[nodiscard]] Result<std::uint64_t> used_bytes(Database& database);

// Forgets the oldest generation with its grants and steps; of the last one, if there is no other,
// the grants and steps of its first quarter. What is left answers as before. meta's
// 'forgotten_step' says the last step that was forgotten. Within a transaction of the caller.
[[nodiscard]] Status forget_oldest(Database& database);

}  // namespace antdt::shard_server
