// Binds a process to the CPUs and the memory nearest to its devices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace antdt::antdtd {

// "0-3,8": the numbers of the bits that are set.
[[nodiscard]] std::string cpu_list(const std::vector<unsigned long>& bits);
// The inverse, without duplicates; empty if `text` is no such list.
[[nodiscard]] std::vector<std::uint32_t> parse_cpu_list(const std::string& text);

// From now on this process, and those that it starts, run on those of `cpus` that they may use
// already, and take memory from that NUMA node first (and from others if it is full). "" and -1:
// nothing changes. Returns what could not be done and why, as a sentence for the log; "" if
// nothing.
[[nodiscard]] std::string bind_to(const std::string& cpus, int numa_node);

}  // namespace antdt::antdtd
