// Sockets for datagrams (UDP). They are non-blocking and are closed when a program is executed.
#pragma once

#include <cstdint>
#include <string>

#include "core/os/owned_fd.h"
#include "core/result.h"

namespace antdt::trainer {

// A datagram socket at `address` (numeric) and `port`; 0 stands for any free port. kIo.
[[nodiscard]] Result<OwnedFd> bind_udp(const std::string& address, std::uint16_t port);
// From now on the socket exchanges datagrams with "address:port" (numeric) alone. kUsage,
// kUnreachable.
[[nodiscard]] Status connect_udp(const OwnedFd& socket, const std::string& address_port);

}  // namespace antdt::trainer
