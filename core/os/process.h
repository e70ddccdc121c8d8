// Processes by pid, told apart from later ones with the same pid by when they
// started.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "core/result.h"

namespace antdt {

// A peer or reader that is gone makes a write fail with EPIPE instead of ending
// this process. Every main calls it first.
void ignore_sigpipe();

// Memory of up to 64 MiB that is freed is kept for what is allocated next. Without it
// glibc gives the buffers of messages of half a megabyte back to the system each time, and
// the next one comes page by page: a parameter server answers half as many rows. For
// processes that exchange such messages; called once, first.
void keep_freed_memory();

// What a child does between fork and exec: no signal blocked or ignored that
// this process blocks or ignores for itself. Async-signal-safe.
void reset_signals_for_child();

// When `pid` started, in clock ticks since boot (/proc/<pid>/stat, field 22).
// kUnreachable if there is no such process.
[[nodiscard]] Result<std::uint64_t> process_start_time(pid_t pid);

// Whether the process that started then under this pid is there and not a
// zombie.
[[nodiscard]] bool process_alive(pid_t pid, std::uint64_t start_time);

// Whether it waits for a disk or another device and cannot be killed meanwhile (state D).
[[nodiscard]] bool process_waits_for_device(pid_t pid);

// A descriptor that is readable once `pid` has ended; close it after use.
// kUnreachable if there is no such process.
[[nodiscard]] Result<int> open_pidfd(pid_t pid);

// Sends `signal` to exactly that process, or fails with kUnreachable if it is
// gone; a new process with the same pid is never hit.
[[nodiscard]] Status signal_process(pid_t pid, std::uint64_t start_time, int signal);

}  // namespace antdt
