#include "trainer/collective/listen_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

namespace antdt::trainer {
namespace {

// "10.0.0.1:7700" -> "10.0.0.1"; "[::1]:7700" -> "::1".
std::string address_of(const std::string& host_port) {
  std::string address = host_port.substr(0, host_port.rfind(':'));
  if (address.size() >= 2 && address.front() == '[' && address.back() == ']') {
    address = address.substr(1, address.size() - 2);
  }
  return address;
}

// Whether a socket can be bound to it.
bool is_ours(const std::string& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (fd < 0) continue;
    const bool bound = bind(fd, at->ai_addr, at->ai_addrlen) == 0;
    close(fd);
    if (bound) return true;
  }
  return false;
}

}  // namespace

Result<RingOptions> listen_options(const std::vector<std::string>& hosts,
                                   const std::string& interface) {
  RingOptions options;
  options.interface = interface;
  if (!interface.empty()) return options;
  options.hostname = "127.0.0.1";
  if (hosts.empty()) return options;
  for (const std::string& host : hosts) {
    options.hostname = address_of(host);
    if (is_ours(options.hostname)) return options;
  }
  return fail(ErrorKind::kUsage,
              "none of [cluster] hosts is an address of this machine: set [cluster] interface to "
              "the network interface that the workers should use");
}

}  // namespace antdt::trainer
