// [cluster] ports: the ports on which processes of a job may listen.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.h"

namespace antdt {

struct PortRange {
  std::uint16_t first = 0;  // 0: any free port
  std::uint16_t last = 0;

  [[nodiscard]] bool any() const { return first == 0; }
  [[nodiscard]] std::uint32_t count() const { return last - first + 1U; }
  // The n-th port to try for a process that begins at `start`; count() tries cover all ports.
  [[nodiscard]] std::uint16_t at(std::uint64_t start, std::uint32_t n) const {
    return static_cast<std::uint16_t>(first + (start + n) % count());
  }
};

// Parses "29400-29999", or "" for any port. kUsage; the launcher has checked the text before.
[[nodiscard]] Result<PortRange> parse_port_range(const std::string& text);

}  // namespace antdt
