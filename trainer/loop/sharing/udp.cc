#include "trainer/loop/sharing/udp.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "core/os/net.h"

namespace antdt::trainer {
namespace {

using NumericAddress = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

NumericAddress numeric(const std::string& address, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), port.c_str(), &hints, &found) != 0) found = nullptr;
  return {found, &freeaddrinfo};
}

}  // namespace

Result<OwnedFd> bind_udp(const std::string& address, std::uint16_t port) {
  const NumericAddress at = numeric(address, std::to_string(port));
  if (at == nullptr) return fail(ErrorKind::kIo, "'{}' is no address in numbers", address);
  OwnedFd fd(socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.is_open() && bind(fd.get(), at->ai_addr, at->ai_addrlen) == 0) return fd;
  return fail_errno(ErrorKind::kIo, errno, "a datagram socket at " + with_port(address, port));
}

Status connect_udp(const OwnedFd& socket, const std::string& address_port) {
  const std::string port = address_port.substr(address_port.rfind(':') + 1);
  const NumericAddress to = numeric(host_of(address_port), port);
  if (to == nullptr) {
    return fail(ErrorKind::kUsage, "'{}' is no address and port in numbers", address_port);
  }
  if (connect(socket.get(), to->ai_addr, to->ai_addrlen) == 0) return {};
  return fail_errno(ErrorKind::kUnreachable, errno, "sending datagrams to " + address_port);
}

}  // namespace antdt::trainer
