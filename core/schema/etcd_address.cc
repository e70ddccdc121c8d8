#include "core/schema/etcd_address.h"

#include <fmt/format.h>

#include "core/os/net.h"

namespace antdt {
namespace {

constexpr std::string_view kScheme = "etcd://";

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

Result<std::vector<std::string>> etcd_members(std::string_view url) {
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorKind::kUsage,
                "'{}' {}: write the members of etcd as \"etcd://10.0.0.1:2379,10.0.0.2:2379\"", url,
                why);
  };
  if (!url.starts_with(kScheme)) return refuse("does not begin with etcd://");
  std::vector<std::string> members;
  std::string_view rest = url.substr(kScheme.size());
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    members.emplace_back(rest.substr(0, comma));
    if (more) rest.remove_prefix(comma + 1);
    if (!is_end_point(members.back())) {
      return refuse(fmt::format("names '{}', which is not \"address:port\"", members.back()));
    }
  }
  return members;
}

std::vector<std::string> exposed_etcd_members(const EtcdAddress& address) {
  std::vector<std::string> exposed;
  for (const std::string& member : address.members) {
    if (!is_loopback(host_of(member))) exposed.push_back(member);
  }
  return exposed;
}

std::string to_string(const EtcdAddress& address) {
  return fmt::format("etcd ({})", fmt::join(address.members, ", "));
}

}  // namespace antdt
