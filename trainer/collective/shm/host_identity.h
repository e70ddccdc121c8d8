// What tells the hosts of members apart, if these are to share memory.
#pragma once

#include <string>

#include "core/result.h"

namespace antdt::trainer {

// Two processes have the same identity only if each can reach the other's abstract unix socket and
// see it as the same user: it is a digest of the kernel's boot id, of the network and the user
// namespace, and of the user id. Containers with a network of their own are therefore hosts of
// their own. kIo if /proc does not tell, or if the kernel makes no memory to share.
[[nodiscard]] Result<std::string> own_host_identity();

}  // namespace antdt::trainer
