// What a plan needs to know beside its trials: the hosts with their links, and the rows of a batch.
#pragma once

#include <vector>

#include "core/result.h"
#include "core/transport/socket.h"
#include "launcher/commands/run/prepare.h"
#include "launcher/plan/measured.h"

namespace antdt::cli {

// Hosts with the job's workers, and where servers would be: the job's number of them, or two; and
// one on each host with workers.
struct PlannedHosts {
  std::vector<launcher::plan::HostLoad> hosts;
  std::vector<launcher::plan::ServerPlacement> servers;
};
[[nodiscard]] PlannedHosts hosts_of(const Prepared& prepared);

// The slowest link between these hosts, which their agents measure in about a second for each host.
// The error names the link that cannot be used.
[[nodiscard]] Result<launcher::plan::Link> measured_link(
    transport::Context& context, const launcher::JobConfig& config,
    const std::vector<launcher::plan::HostLoad>& hosts);

// How many different rows batches of these sizes need, from records of the job's data. Empty: the
// data have no categories.
[[nodiscard]] Result<launcher::plan::Curve> rows_of_batches(
    const launcher::JobConfig& config, const std::vector<std::uint64_t>& sizes);

}  // namespace antdt::cli
