// What a plan needs to know beside its trials: the hosts with their links, and the rows of a batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

struct HostPair {
  std::size_t from = 0, to = 0;  // indices of hosts
  launcher::plan::Link link;
};
// The links between all of these hosts, which their agents measure in about a second for each host.
// The error names the link that cannot be used.
[[nodiscard]] Result<std::vector<HostPair>> measured_links(
    transport::Context& context, const launcher::JobConfig& config,
    const std::vector<launcher::plan::HostLoad>& hosts);

// Of the workers' domains, if they are in several: which workers share memory, and which domain
// each of `hosts` is in. Links are not known yet.
[[nodiscard]] std::optional<launcher::plan::DomainLinks> domains_of(
    const Prepared& prepared, const std::vector<launcher::plan::HostLoad>& hosts);
// The domain of each worker on the host of this name, by rank.
[[nodiscard]] std::vector<std::string> domains_on(const Prepared& prepared,
                                                  const std::string& host);
// The slowest of the links, of those within a domain, or of those between two; empty: there is
// none.
enum class Which : std::uint8_t { kAll, kWithin, kBetween };
[[nodiscard]] std::optional<launcher::plan::Link> slowest_of(
    const std::vector<HostPair>& links, Which which, const std::vector<std::uint32_t>& domains);

// How many different rows batches of these sizes need, from records of the job's data. Empty: the
// data have no categories.
[[nodiscard]] Result<launcher::plan::Curve> rows_of_batches(
    const launcher::JobConfig& config, const std::vector<std::uint64_t>& sizes);

}  // namespace antdt::cli
