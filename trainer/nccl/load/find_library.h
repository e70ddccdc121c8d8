// Where the shared libraries of NCCL and of the CUDA runtime are looked for.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace antdt::nccl {

using Environment = std::function<std::string(const std::string& name)>;  // "": not set
// The environment of this process.
[[nodiscard]] Environment own_environment();

// What to try to load, in this order; a name without '/' is looked for by the dynamic loader.
//
// `named`, or the variable ANTDT_NCCL_LIBRARY (ANTDT_CUDART_LIBRARY): that file and nothing else.
// Otherwise the loader's own directories, and after them the wheels nvidia-nccl-* and
// nvidia-cuda-runtime-* in the directories of Python's packages: of VIRTUAL_ENV, of HOME, of the
// system. `root` stands before absolute directories, for tests.
[[nodiscard]] std::vector<std::string> nccl_candidates(const std::string& named,
                                                       const Environment& environment,
                                                       const std::string& root = "");
[[nodiscard]] std::vector<std::string> cudart_candidates(const std::string& named,
                                                         const Environment& environment,
                                                         const std::string& root = "");

}  // namespace antdt::nccl
