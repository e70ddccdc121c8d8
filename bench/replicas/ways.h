// The ways to mix replicas that antdt-replicas-bench compares.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/replicas/rules.h"
#include "bench/synchronisation/descent.h"
#include "core/result.h"

namespace antdt::bench::replicas {

struct Way {
  std::string name;
  synchronisation::Mixing mixing;
  Rule rule = Rule::kEngine;
};

// all-reduce, with which the others are compared, and those of these names, each once, in the order
// of the tables. kUsage for an unknown name; it names the known ones.
[[nodiscard]] Result<std::vector<Way>> ways_of(std::span<const std::string> names);

}  // namespace antdt::bench::replicas
