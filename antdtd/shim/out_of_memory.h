// Whether a process ended because memory ran out, judged by what it leaves behind. Pure.
//
// The strongest evidence is that its cgroup counted a kill for lack of memory; then, that its own
// last lines say so. A SIGKILL alone is no evidence, because others send it, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "antdtd/shim/process_key.h"

namespace antdt::antdtd {

// `oom_kill` of a memory.events file; empty if it has no such line.
[[nodiscard]] std::optional<std::uint64_t> oom_kills(std::string_view memory_events);

// The line among a program's last ones that says that it could not get memory, of the host or of a
// device; empty if there is none.
[[nodiscard]] std::string memory_complaint(std::string_view last_lines);

// The evidence to report with `status`: empty for a program that ended well, could not be executed,
// or left no evidence. `memory_events`: of its cgroup, empty if it had none of its own.
[[nodiscard]] std::string oom_evidence(const ExitStatus& status, std::string_view memory_events);

}  // namespace antdt::antdtd
