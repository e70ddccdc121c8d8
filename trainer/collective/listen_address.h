// The address on which a member listens for the others.
#pragma once

#include <string>
#include <vector>

#include "trainer/collective/options.h"

namespace antdt::trainer {

// The network interface, if one is named; else the first of the cluster's hosts ("address:port")
// whose address belongs to this machine; without hosts, loopback. `ports` is "29400-29999", or ""
// for any. An error (kUsage) if none of the hosts is this machine.
[[nodiscard]] Result<CollectiveOptions> listen_options(const std::vector<std::string>& hosts,
                                                       const std::string& interface,
                                                       const std::string& ports);

}  // namespace antdt::trainer
