// One seed, from its first event to its last.
#pragma once

#include <optional>
#include <string>

#include "sim/options.h"
#include "sim/world.h"

namespace antdt::sim {

struct RunReport {
  std::optional<Violation> violation;
  std::uint64_t events = 0;
  Duration took{};  // virtual
  std::string transcript;
};

[[nodiscard]] RunReport run(const Options& options);

}  // namespace antdt::sim
