#include "trainer/nccl/load/find_library.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace antdt::nccl {
namespace {

namespace fs = std::filesystem;

// The directories DIRECTORY/python3*/NAME that exist, the newest Python first.
void add_packages(const fs::path& directory, const char* name, std::vector<fs::path>& found) {
  std::vector<fs::path> here;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const fs::path packages = it->path() / name;
    if (it->path().filename().string().starts_with("python3") && fs::exists(packages, ignored)) {
      here.push_back(packages);
    }
  }
  std::sort(here.rbegin(), here.rend());
  found.insert(found.end(), here.begin(), here.end());
}

std::vector<fs::path> package_directories(const Environment& environment, const std::string& root) {
  std::vector<fs::path> found;
  if (const std::string venv = environment("VIRTUAL_ENV"); !venv.empty()) {
    add_packages(fs::path(venv) / "lib", "site-packages", found);
  }
  if (const std::string home = environment("HOME"); !home.empty()) {
    add_packages(fs::path(home) / ".local/lib", "site-packages", found);
  }
  for (const char* name : {"dist-packages", "site-packages"}) {
    add_packages(root + "/usr/local/lib", name, found);
    add_packages(root + "/usr/lib", name, found);
  }
  return found;
}

// `names`: what the loader finds; `in_wheels`: the same below a directory of packages.
std::vector<std::string> candidates(const std::string& named, const char* variable,
                                    std::vector<std::string> names,
                                    const std::vector<std::string>& in_wheels,
                                    const Environment& environment, const std::string& root) {
  if (!named.empty()) return {named};
  if (const std::string file = environment(variable); !file.empty()) return {file};
  for (const fs::path& packages : package_directories(environment, root)) {
    for (const std::string& name : in_wheels) {
      std::error_code ignored;
      if (fs::exists(packages / name, ignored)) names.push_back((packages / name).string());
    }
  }
  return names;
}

}  // namespace

Environment own_environment() {
  return [](const std::string& name) {
    const char* const value = std::getenv(name.c_str());
    return std::string(value == nullptr ? "" : value);
  };
}

std::vector<std::string> nccl_candidates(const std::string& named, const Environment& environment,
                                         const std::string& root) {
  return candidates(named, "ANTDT_NCCL_LIBRARY", {"libnccl.so.2"}, {"nvidia/nccl/lib/libnccl.so.2"},
                    environment, root);
}

std::vector<std::string> cudart_candidates(const std::string& named, const Environment& environment,
                                           const std::string& root) {
  return candidates(named, "ANTDT_CUDART_LIBRARY",
                    {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"},
                    {"nvidia/cu13/lib/libcudart.so.13", "nvidia/cuda_runtime/lib/libcudart.so.12",
                     "nvidia/cuda_runtime/lib/libcudart.so.11.0"},
                    environment, root);
}

}  // namespace antdt::nccl
