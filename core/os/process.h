// Processes by pid, distinguished by their start times from later ones with the same pid.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "core/result.h"

namespace antdt {

// Makes a write to a peer or reader that is gone fail with EPIPE instead of ending this process.
// Every main calls it first.
void ignore_sigpipe();

// Keeps up to 64 MiB of freed memory for later allocations. By default, glibc returns the buffers
// of messages of half a megabyte to the system each time, and the next buffer is faulted in page by
// page, so that a parameter server answers half as many rows. For processes that exchange such
// messages; to be called once, first.
void keep_freed_memory();

// Raises this process's own limit of open files to what the system allows it; a process with a
// connection to each of many hosts needs more than the usual 1024. For main, before it starts
// threads. Not for processes in which a user's code runs: it may use select(), or close every
// descriptor up to the limit.
void raise_open_files_limit();

// To be called in a child between fork and exec: gives the program the limit of open files that
// this process had before raise_open_files_limit(). Async-signal-safe.
void restore_open_files_limit_for_child();

// To be called in a child between fork and exec: unblocks and restores all signals that this
// process blocks or ignores for itself. Async-signal-safe.
void reset_signals_for_child();

// When `pid` started, in clock ticks since boot (/proc/<pid>/stat, field 22).
// kUnreachable if there is no such process.
[[nodiscard]] Result<std::uint64_t> process_start_time(pid_t pid);

// Whether the process with this pid and start time exists and is not a zombie.
[[nodiscard]] bool process_alive(pid_t pid, std::uint64_t start_time);

// Whether it waits for a disk or another device and cannot be killed meanwhile (state D).
[[nodiscard]] bool process_waits_for_device(pid_t pid);

// A descriptor that is readable once `pid` has ended; close it after use.
// kUnreachable if there is no such process.
[[nodiscard]] Result<int> open_pidfd(pid_t pid);

// Sends `signal` to exactly that process, or fails with kUnreachable if it is gone. A new process
// with the same pid is never signalled.
[[nodiscard]] Status signal_process(pid_t pid, std::uint64_t start_time, int signal);

}  // namespace antdt
