// Tcp: which addresses are this machine's, and connections to them and to others. The
// sockets block nobody (O_NONBLOCK) and are closed in a program that is executed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/os/owned_fd.h"
#include "core/result.h"

namespace antdt {

// End points are "10.0.0.1:7700", "name:7700" or "[::1]:7700": an IPv6 address stands in brackets
// where a port follows it, and nowhere else.
//
// The address of `address_port`, without brackets: all of it where there is no port.
[[nodiscard]] std::string host_of(const std::string& address_port);
[[nodiscard]] std::string with_port(const std::string& address, std::uint16_t port);
// Whether it is an end point with a port of 1 to 65535 (0 to 65535 where `any` may be chosen).
[[nodiscard]] bool is_end_point(const std::string& address_port, bool any = false);

// The address of `interface`, its IPv4 address where it has one, else an IPv6 address that is not
// of this link alone; an error names the interfaces there are. With "", the first such address
// that is not of a loopback interface, or 127.0.0.1.
[[nodiscard]] Result<std::string> interface_address(const std::string& interface);

// The first of `hosts` ("address:port") that is an address of this machine, as a
// number and without the port; "" if none is.
[[nodiscard]] std::string own_address_among(const std::vector<std::string>& hosts);

// Whether somebody takes a connection at "address:port" (a number); it is closed at
// once. kUnreachable, with the system's reason.
[[nodiscard]] Status try_to_connect(const std::string& address_port, Duration timeout);

// Listens at `address` (a name or a number) on `port`, 0 for any that is free. kIo.
[[nodiscard]] Result<OwnedFd> listen_tcp(const std::string& address, std::uint16_t port);

// "10.0.0.1:29400", "[::1]:29400": where `socket` is on this machine. kIo.
[[nodiscard]] Result<std::string> local_address(const OwnedFd& socket);

// Starts to connect to "address:port" (a number): once the socket can be written, or has
// failed, connect_error() says how it went. kUsage for what is no address; kUnreachable.
[[nodiscard]] Result<OwnedFd> start_to_connect(const std::string& address_port);
[[nodiscard]] int connect_error(const OwnedFd& socket);  // 0: connected

// For a message about an errno: where file descriptors ran out, how to have more; else "".
[[nodiscard]] std::string how_to_mend(int error);

}  // namespace antdt
