#include "trainer/collective/listen_address.h"

#include "core/os/net.h"

namespace antdt::trainer {

Result<CollectiveOptions> listen_options(const std::vector<std::string>& hosts,
                                         const std::string& interface, const std::string& ports) {
  CollectiveOptions options;
  options.interface = interface;
  ANTDT_TRY(options.ports, parse_port_range(ports));
  if (!interface.empty()) return options;
  options.hostname = "127.0.0.1";
  if (hosts.empty()) return options;
  options.hostname = own_address_among(hosts);
  if (!options.hostname.empty()) return options;
  return fail(ErrorKind::kUsage,
              "none of [cluster] hosts is an address of this machine: set [cluster] interface to "
              "the network interface that the workers should use");
}

}  // namespace antdt::trainer
