// How far a server is with writing its slices of a checkpoint.
#pragma once

#include <cstdint>
#include <string>

namespace antdt::ps {

struct CutProgress {
  std::string directory;
  std::uint64_t done_bytes = 0;  // that are on the disk
  std::uint64_t total_bytes = 0;
};

}  // namespace antdt::ps
