#include "core/accelerator/find_library.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace antdt::accelerator {
namespace {

namespace fs = std::filesystem;

// A library under the names by which it is found.
struct Names {
  const char* variable;                  // names its file
  std::vector<std::string> of_loader;    // the newest first
  std::vector<std::string> in_packages;  // below a directory of Python's packages
  std::vector<std::string> wheels;       // how the names of the wheels' folders begin
};

Names nccl_names() {
  return {
      "ANTDT_NCCL_LIBRARY", {"libnccl.so.2"}, {"nvidia/nccl/lib/libnccl.so.2"}, {"nvidia_nccl_"}};
}

Names cudart_names() {
  return {"ANTDT_CUDART_LIBRARY",
          {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"},
          {"nvidia/cu13/lib/libcudart.so.13", "nvidia/cuda_runtime/lib/libcudart.so.12",
           "nvidia/cuda_runtime/lib/libcudart.so.11.0"},
          {"nvidia_cuda_runtime-", "nvidia_cuda_runtime_"}};
}

bool is_there(const fs::path& path) { return ::access(path.c_str(), R_OK) == 0; }

// The directories DIRECTORY/python3*/NAME that exist, the newest Python first.
void add_packages(const fs::path& directory, const char* name, std::vector<fs::path>& found) {
  std::vector<fs::path> here;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const fs::path packages = it->path() / name;
    if (it->path().filename().string().starts_with("python3") && is_there(packages)) {
      here.push_back(packages);
    }
  }
  // "python3.9" is older than "python3.11".
  std::sort(here.begin(), here.end(), [](const fs::path& a, const fs::path& b) {
    const std::string left = a.parent_path().filename(), right = b.parent_path().filename();
    return left.size() != right.size() ? left.size() > right.size() : left > right;
  });
  found.insert(found.end(), here.begin(), here.end());
}

std::vector<fs::path> package_directories(const Environment& environment, const std::string& root) {
  std::vector<fs::path> found;
  if (const std::string venv = environment("VIRTUAL_ENV"); !venv.empty()) {
    add_packages(root + venv + "/lib", "site-packages", found);
  }
  if (const std::string home = environment("HOME"); !home.empty()) {
    add_packages(root + home + "/.local/lib", "site-packages", found);
  }
  for (const char* name : {"dist-packages", "site-packages"}) {
    add_packages(root + "/usr/local/lib", name, found);
    add_packages(root + "/usr/lib", name, found);
  }
  return found;
}

std::vector<std::string> candidates(const Names& names, const std::string& named,
                                    const Environment& environment, const std::string& root) {
  if (!named.empty()) return {named};
  if (const std::string file = environment(names.variable); !file.empty()) return {file};
  std::vector<std::string> found = names.of_loader;
  for (const fs::path& packages : package_directories(environment, root)) {
    for (const std::string& name : names.in_packages) {
      if (is_there(packages / name)) found.push_back((packages / name).string());
    }
  }
  return found;
}

std::vector<std::string> system_directories(const Environment& environment) {
  std::vector<std::string> directories;
  const std::string paths = environment("LD_LIBRARY_PATH");
  for (std::size_t at = 0; at < paths.size();) {
    const std::size_t end = std::min(paths.find(':', at), paths.size());
    if (end > at) directories.push_back(paths.substr(at, end - at));
    at = end + 1;
  }
  for (const char* directory :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
        "/usr/local/lib", "/usr/local/cuda/lib64"}) {
    directories.emplace_back(directory);
  }
  return directories;
}

// "2.27.5" of "libnccl.so.2.27.5", to which a shorter name is a link.
std::string version_in_name(const fs::path& file) {
  std::error_code error;
  const fs::path real = fs::canonical(file, error);
  const std::string name = (error ? file : real).filename();
  const std::size_t at = name.find(".so.");
  const std::string version = at == std::string::npos ? "" : name.substr(at + 4);
  return std::count(version.begin(), version.end(), '.') >= 2 ? version : "";
}

// "2.27.5" of "nvidia_nccl_cu12-2.27.5.dist-info", beside the wheel's files.
std::string version_of_wheel(const fs::path& packages, const std::vector<std::string>& wheels) {
  constexpr std::string_view kEnd = ".dist-info";
  std::error_code error;
  for (fs::directory_iterator it(packages, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    const std::size_t dash = name.rfind('-', name.size() - std::min(name.size(), kEnd.size()));
    const bool is_wheel =
        std::any_of(wheels.begin(), wheels.end(),
                    [&name](const std::string& begin) { return name.starts_with(begin); });
    if (!is_wheel || !name.ends_with(kEnd) || dash == std::string::npos) continue;
    return name.substr(dash + 1, name.size() - kEnd.size() - dash - 1);
  }
  return "";
}

// `path` without the root of a test.
std::string told(const fs::path& path, const std::string& root) {
  return path.string().substr(root.size());
}

InstalledLibrary installed(const Names& names, const Environment& environment,
                           const std::string& root) {
  if (const std::string file = environment(names.variable); !file.empty()) {
    if (!is_there(root + file)) return {};
    return {file, version_in_name(root + file)};
  }
  for (const std::string& directory : system_directories(environment)) {
    for (const std::string& name : names.of_loader) {
      const fs::path file = root + directory + "/" + name;
      if (is_there(file)) return {told(file, root), version_in_name(file)};
    }
  }
  for (const fs::path& packages : package_directories(environment, root)) {
    for (const std::string& name : names.in_packages) {
      if (!is_there(packages / name)) continue;
      return {told(packages / name, root), version_of_wheel(packages, names.wheels)};
    }
  }
  return {};
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
  return candidates(nccl_names(), named, environment, root);
}

std::vector<std::string> cudart_candidates(const std::string& named, const Environment& environment,
                                           const std::string& root) {
  return candidates(cudart_names(), named, environment, root);
}

InstalledLibrary installed_nccl(const Environment& environment, const std::string& root) {
  return installed(nccl_names(), environment, root);
}

InstalledLibrary installed_cudart(const Environment& environment, const std::string& root) {
  return installed(cudart_names(), environment, root);
}

}  // namespace antdt::accelerator
