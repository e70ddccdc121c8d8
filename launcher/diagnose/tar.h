// A tar archive in memory. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::launcher {

struct ArchivedFile {
  std::string name;  // a relative path of at most 100 bytes
  std::string content;
};

// The files as a ustar archive below the directory `top`, in their order, with mode 0600 and the
// time `mtime` (seconds since 1970). kInternal if a name is too long for the format.
[[nodiscard]] Result<std::string> tar_of(const std::string& top,
                                         const std::vector<ArchivedFile>& files,
                                         std::uint64_t mtime);

}  // namespace antdt::launcher
