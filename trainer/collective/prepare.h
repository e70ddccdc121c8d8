// How a member gets its collective: it listens, and once the addresses of all members are known,
// all decide alike which of them share memory (host_groups.h).
#pragma once

#include <cstdint>
#include <memory>

#include "core/result.h"
#include "trainer/collective/collective.h"
#include "trainer/collective/options.h"

namespace antdt::trainer {

// Begins to listen. kIo if that fails for the address or the interface, or if memory is to be
// shared and this process cannot do that.
[[nodiscard]] Result<std::unique_ptr<CollectiveBuilder>> prepare_collective(
    std::uint32_t rank, std::uint32_t size, const CollectiveOptions& options);

}  // namespace antdt::trainer
