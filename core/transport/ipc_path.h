// The longest path of a local socket that the system allows. Private to this folder.
#pragma once

#include <string>

#include "core/result.h"

namespace antdt::transport {

// size of sockaddr_un.sun_path without its terminating zero
inline constexpr std::size_t kMaxIpcPath = 107;

[[nodiscard]] inline Status check_ipc_path(const std::string& path) {
  if (path.size() <= kMaxIpcPath) return {};
  return fail(ErrorKind::kUsage,
              "the socket path {} has {} characters and the system allows {}: choose a shorter "
              "directory (XDG_RUNTIME_DIR)",
              path, path.size(), kMaxIpcPath);
}

}  // namespace antdt::transport
