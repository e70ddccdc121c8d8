// Measures the connections between each pair of hosts, both ways.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jobd/disk/host_files.h"
#include "launcher/doctor/facts.h"

namespace antdt::cli {

// By the indices of `facts.hosts`; empty: that host did not answer, or is this one. In each round
// every host is in one pair at most, so no measurement disturbs another one at the same host.
void measure_pairs(std::vector<std::optional<jobd::HostFiles>>& links, launcher::Facts& facts);

}  // namespace antdt::cli
