#include "launcher/config/agent_address.h"

#include <cstdint>

#include "core/os/net.h"

namespace antdt::launcher {

namespace {

constexpr std::uint16_t kUsualPort = 7700;

}  // namespace

Result<std::string> agent_end_point(const std::string& name) {
  if (is_end_point(name)) return name;
  const std::string host = host_of(name);
  if (!host.empty() && (host == name || fmt::format("[{}]", host) == name)) {
    return with_port(host, kUsualPort);
  }
  return fail(ErrorKind::kUsage,
              "'{}' is no agent: write host or host:port (default port {}), as in n1, "
              "10.0.0.1:7700 or [2001:db8::1]:7700",
              name, kUsualPort);
}

}  // namespace antdt::launcher
