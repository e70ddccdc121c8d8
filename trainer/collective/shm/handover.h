// What two members that have met hand to each other over their connection.
#pragma once

#include <sched.h>

#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "core/os/owned_fd.h"
#include "core/result.h"

namespace antdt::trainer::shm {

struct Handover {
  OwnedFd bell;    // an eventfd
  OwnedFd memory;  // only from a host's first member
  cpu_set_t cpus{};
};

// Sends the descriptors, which stay open here; `memory` may be null. kIo.
[[nodiscard]] Status hand_over(const OwnedFd& connection, const OwnedFd& bell,
                               const OwnedFd* memory, const cpu_set_t& cpus);

// Blocks until a handover has come, until `wake` is readable (kAborted), or until `until` (kIo).
// kCorrupt if it has not exactly the descriptors that are due.
[[nodiscard]] Result<Handover> take_over(const OwnedFd& connection, bool with_memory,
                                         const OwnedFd& wake, MonoTime until);

}  // namespace antdt::trainer::shm
