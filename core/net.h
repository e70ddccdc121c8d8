// Tcp addresses: which of them are this machine's, and whether another can be reached.
#pragma once

#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"

namespace antdt {

// The IPv4 address of `interface`; an error names the interfaces there are.
// With "", the first address that is not of a loopback interface, or 127.0.0.1.
[[nodiscard]] Result<std::string> interface_address(const std::string& interface);

// The first of `hosts` ("address:port") that is an address of this machine, as a
// number and without the port; "" if none is.
[[nodiscard]] std::string own_address_among(const std::vector<std::string>& hosts);

// Whether somebody takes a connection at "address:port" (a number); it is closed at
// once. kUnreachable, with the system's reason.
[[nodiscard]] Status try_to_connect(const std::string& address_port, Duration timeout);

}  // namespace antdt
