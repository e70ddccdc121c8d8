// The resources that this host can give to jobs, and its addresses.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.h"

namespace antdt::antdtd {

struct Capacity {
  double cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::uint32_t devices = 0;
  bool operator==(const Capacity&) const = default;
};

// CPUs on which this process may run, limited by the cgroup's quota; memory of the machine, limited
// by the cgroup's limit; accelerator devices (/dev/nvidia<n>). `root` replaces "/" for everything
// that is read from a file.
[[nodiscard]] Capacity probe_capacity(const std::string& root = "");

// Only those devices.
[[nodiscard]] std::uint32_t count_devices(const std::string& root = "");

[[nodiscard]] std::string host_name();

// A tcp port at `address` on which nobody listens now.
[[nodiscard]] Result<std::uint16_t> free_port(const std::string& address);

}  // namespace antdt::antdtd
