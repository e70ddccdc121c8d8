// Where the shared libraries of NCCL and of the CUDA runtime are. Nothing is loaded here.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace antdt::accelerator {

using Environment = std::function<std::string(const std::string& name)>;  // "": not set
// The environment of this process.
[[nodiscard]] Environment own_environment();

// `root`, in all of these, stands before each absolute directory, for tests.
//
// What to try to load, in this order; a name without '/' is looked for by the dynamic loader.
//
// `named`, or the variable ANTDT_NCCL_LIBRARY (ANTDT_CUDART_LIBRARY): that file and nothing else.
// Otherwise the loader's own directories, and after them the wheels nvidia-nccl-* and
// nvidia-cuda-runtime-* in the directories of Python's packages: of VIRTUAL_ENV, of HOME, of the
// system.
[[nodiscard]] std::vector<std::string> nccl_candidates(const std::string& named,
                                                       const Environment& environment,
                                                       const std::string& root = "");
[[nodiscard]] std::vector<std::string> cudart_candidates(const std::string& named,
                                                         const Environment& environment,
                                                         const std::string& root = "");

// The file that a worker would load, as far as that can be told without the loader: of
// LD_LIBRARY_PATH, of the usual directories, or of a wheel.
struct InstalledLibrary {
  std::string path;     // "": not found
  std::string version;  // "2.27.5", by the file's name or its wheel's; "": they do not say
};
[[nodiscard]] InstalledLibrary installed_nccl(const Environment& environment,
                                              const std::string& root = "");
[[nodiscard]] InstalledLibrary installed_cudart(const Environment& environment,
                                                const std::string& root = "");

}  // namespace antdt::accelerator
