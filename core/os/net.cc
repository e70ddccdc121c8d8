#include "core/os/net.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <set>

namespace antdt {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses find(const std::string& address, const char* port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), port, &hints, &found) != 0) found = nullptr;
  return {found, &freeaddrinfo};
}

std::string text_of(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  const int rc = getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return rc == 0 ? text.data() : "";
}

bool can_be_bound(const addrinfo& at) {
  const int fd = socket(at.ai_family, at.ai_socktype | SOCK_CLOEXEC, at.ai_protocol);
  if (fd < 0) return false;
  const bool bound = bind(fd, at.ai_addr, at.ai_addrlen) == 0;
  close(fd);
  return bound;
}

// Whether it is an address of this family that is not link-local: a link-local address also needs
// the link's name.
bool is_of(const ifaddrs& at, int family) {
  if (at.ifa_addr == nullptr || at.ifa_addr->sa_family != family) return false;
  if (family != AF_INET6) return true;
  return !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(at.ifa_addr)->sin6_addr);
}

}  // namespace

std::string host_of(const std::string& address_port) {
  const std::size_t colon = address_port.rfind(':');
  const bool several = colon != std::string::npos && address_port.find(':') != colon;
  if (address_port.starts_with('[')) {
    const std::size_t end = address_port.find(']');
    return end == std::string::npos ? address_port : address_port.substr(1, end - 1);
  }
  return several ? address_port : address_port.substr(0, colon);
}

std::string with_port(const std::string& address, std::uint16_t port) {
  const bool six = address.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(six ? "[{}]:{}" : "{}:{}"), address, port);
}

bool is_end_point(const std::string& address_port, bool any) {
  const std::size_t colon = address_port.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  std::uint32_t port = 0;
  const char* const end = address_port.data() + address_port.size();
  const auto [stop, error] = std::from_chars(address_port.data() + colon + 1, end, port);
  if (error != std::errc() || stop != end || port > 65535 || (port == 0 && !any)) return false;
  const std::string before = address_port.substr(0, colon);
  if (before.find(':') == std::string::npos) return before.find_first_of("[]") == before.npos;
  in6_addr address{};
  return before.front() == '[' && before.back() == ']' &&
         inet_pton(AF_INET6, host_of(address_port).c_str(), &address) == 1;
}

Result<std::string> interface_address(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "listing this machine's network interfaces");
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> guard(list, &freeifaddrs);
  std::set<std::string> names;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
      if (!is_of(*at, family)) continue;
      names.insert(at->ifa_name);
      const bool usable = (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_LOOPBACK) == 0;
      if (interface.empty() ? usable : interface == at->ifa_name) {
        return text_of(at->ifa_addr,
                       family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
      }
    }
  }
  if (interface.empty()) return "127.0.0.1";
  return fail(ErrorKind::kUsage,
              "the network interface '{}' has no address here that others can reach; those that "
              "have one: {}",
              interface, fmt::join(names, ", "));
}

std::string own_address_among(const std::vector<std::string>& hosts) {
  for (const std::string& host : hosts) {
    const Addresses found = find(host_of(host), nullptr, 0);
    for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
      if (can_be_bound(*at)) return text_of(at->ai_addr, at->ai_addrlen);
    }
  }
  return "";
}

Result<std::vector<std::string>> addresses_of(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = getaddrinfo(name.c_str(), nullptr, &hints, &list); error != 0) {
    return fail(ErrorKind::kUnreachable, "{}", gai_strerror(error));
  }
  const Addresses found(list, &freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    std::string text = text_of(at->ai_addr, at->ai_addrlen);
    if (!text.empty()) addresses.push_back(std::move(text));
  }
  if (addresses.empty()) return fail(ErrorKind::kUnreachable, "it has no address");
  return addresses;
}

Result<OwnedFd> connect_within(const std::string& address_port, Duration timeout) {
  ANTDT_TRY(OwnedFd socket, start_to_connect(address_port));
  pollfd waiting{socket.get(), POLLOUT, 0};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  const int ready = poll(&waiting, 1, static_cast<int>(ms));
  int error = ready < 0 ? errno : ETIMEDOUT;
  if (ready > 0) error = connect_error(socket);
  if (error == 0) return socket;
  return fail_errno(ErrorKind::kUnreachable, error, "connecting to " + address_port);
}

Status try_to_connect(const std::string& address_port, Duration timeout) {
  ANTDT_TRY([[maybe_unused]] const OwnedFd socket, connect_within(address_port, timeout));
  return {};
}

Result<OwnedFd> listen_tcp(const std::string& address, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  if (const int error = getaddrinfo(address.c_str(), service.c_str(), &hints, &found); error != 0) {
    return fail(ErrorKind::kIo, "the address '{}': {}", address, gai_strerror(error));
  }
  const Addresses at(found, &freeaddrinfo);
  OwnedFd fd(socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  // A port whose last connections are still being closed counts as free.
  const bool listens =
      fd.is_open() && setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
      bind(fd.get(), at->ai_addr, at->ai_addrlen) == 0 && listen(fd.get(), SOMAXCONN) == 0;
  if (listens) return fd;
  return fail_errno(ErrorKind::kIo, errno, "listening at " + with_port(address, port));
}

Result<std::string> local_address(const OwnedFd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  if (getsockname(socket.get(), at, &size) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "asking for a socket's address");
  }
  const bool six = address.ss_family == AF_INET6;
  const std::uint16_t port = ntohs(six ? reinterpret_cast<sockaddr_in6*>(at)->sin6_port
                                       : reinterpret_cast<sockaddr_in*>(at)->sin_port);
  return with_port(text_of(at, size), port);
}

Result<OwnedFd> start_to_connect(const std::string& address_port) {
  const std::string port = address_port.substr(address_port.rfind(':') + 1);
  const Addresses to = find(host_of(address_port), port.c_str(), AI_NUMERICHOST | AI_NUMERICSERV);
  if (to == nullptr) {
    return fail(ErrorKind::kUsage, "'{}' is no address and port in numbers", address_port);
  }
  OwnedFd fd(socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) {
    const int error = errno;
    return fail(ErrorKind::kIo, "making a socket: {}{}", std::strerror(error), how_to_mend(error));
  }
  if (connect(fd.get(), to->ai_addr, to->ai_addrlen) == 0 || errno == EINPROGRESS) return fd;
  return fail_errno(ErrorKind::kUnreachable, errno, "connecting to " + address_port);
}

int connect_error(const OwnedFd& socket) {
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

std::string how_to_mend(int error) {
  if (error == EMFILE) {
    return " (raise its limit of open files: ulimit -n, or LimitNOFILE= in the unit of antdtd)";
  }
  if (error == ENFILE) return " (raise this machine's limit of open files: sysctl fs.file-max)";
  return {};
}

}  // namespace antdt
