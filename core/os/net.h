// TCP: which addresses belong to this machine, and connections. The sockets are non-blocking
// (O_NONBLOCK) and are closed when a program is executed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/os/owned_fd.h"
#include "core/result.h"

namespace antdt {

// End points are "10.0.0.1:7700", "name:7700" or "[::1]:7700": an IPv6 address is in brackets if a
// port follows it, and only then.
//
// Returns the address in `address_port`, without brackets; all of it if there is no port.
[[nodiscard]] std::string host_of(const std::string& address_port);
[[nodiscard]] std::string with_port(const std::string& address, std::uint16_t port);
// Whether it is an end point with a port from 1 to 65535 (or 0 to 65535 if `any` port may be
// chosen).
[[nodiscard]] bool is_end_point(const std::string& address_port, bool any = false);

// The address of `interface`: its IPv4 address if it has one, else an IPv6 address that is not
// link-local. The error lists the existing interfaces. With "": the first such address that does
// not belong to a loopback interface, or 127.0.0.1.
[[nodiscard]] Result<std::string> interface_address(const std::string& interface);

// The first of `hosts` ("address:port") whose address belongs to this machine, as a numeric address
// without the port; "" if none does.
[[nodiscard]] std::string own_address_among(const std::vector<std::string>& hosts);

// The numeric addresses of a host's name, at least one. kUnreachable, with the resolver's reason.
[[nodiscard]] Result<std::vector<std::string>> addresses_of(const std::string& name);

// A connection to "address:port" (numeric). kUnreachable, with the system's reason.
[[nodiscard]] Result<OwnedFd> connect_within(const std::string& address_port, Duration timeout);
// Whether "address:port" (numeric) accepts a connection, which is closed at once. kUnreachable,
// with the system's reason.
[[nodiscard]] Status try_to_connect(const std::string& address_port, Duration timeout);

// Listens at `address` (a name or numeric) on `port`; 0 stands for any free port. kIo.
[[nodiscard]] Result<OwnedFd> listen_tcp(const std::string& address, std::uint16_t port);

// The address of `socket` on this machine: "10.0.0.1:29400", "[::1]:29400". kIo.
[[nodiscard]] Result<std::string> local_address(const OwnedFd& socket);

// Starts to connect to "address:port" (numeric). Once the socket is writable or has failed,
// connect_error() returns the result. kUsage for what is not an address; kUnreachable.
[[nodiscard]] Result<OwnedFd> start_to_connect(const std::string& address_port);
[[nodiscard]] int connect_error(const OwnedFd& socket);  // 0: connected

// Advice for a message about an errno: how to allow more file descriptors if they ran out; else "".
[[nodiscard]] std::string how_to_mend(int error);

}  // namespace antdt
