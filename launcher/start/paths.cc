#include "launcher/start/paths.h"

#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace antdt::launcher {

namespace {

Status check_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return fail_errno(ErrorKind::kUsage, errno, fmt::format("'{}' cannot be read", path));
  }
  if (S_ISDIR(info.st_mode)) {
    return fail(ErrorKind::kUsage, "'{}' is a directory: write '{}/*' for the files in it", path,
                path);
  }
  if (::access(path.c_str(), R_OK) != 0) {
    return fail_errno(ErrorKind::kUsage, errno, fmt::format("'{}' cannot be read", path));
  }
  return {};
}

bool is_executable_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string absolute_path(const std::string& path, const std::string& base) {
  std::string expanded = path;
  if (path == "~" || path.starts_with("~/")) {
    const char* home = std::getenv("HOME");
    expanded = (home != nullptr ? std::string(home) : "/") + path.substr(1);
  }
  std::filesystem::path full = std::filesystem::path(base) / expanded;
  if (full.is_relative()) full = std::filesystem::current_path() / full;
  return full.lexically_normal().string();
}

Result<std::vector<std::string>> expand_files(const std::string& pattern, const std::string& base) {
  const std::string full = absolute_path(pattern, base);
  if (full.find_first_of("*?[") == std::string::npos) {
    ANTDT_RETURN_IF_ERROR(check_file(full));
    return std::vector<std::string>{full};
  }
  glob_t found{};
  const int rc = ::glob(full.c_str(), 0, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (rc == GLOB_NOMATCH) return fail(ErrorKind::kUsage, "no file matches '{}'", full);
  if (rc != 0) return fail(ErrorKind::kUsage, "the files of '{}' cannot be listed", full);
  for (const std::string& file : files) ANTDT_RETURN_IF_ERROR(check_file(file));
  return files;
}

Result<std::string> find_program(const std::string& name, const std::string& beside,
                                 const std::string& base) {
  if (name.find('/') != std::string::npos) {
    const std::string path = absolute_path(name, base);
    if (is_executable_file(path)) return path;
    return fail(
        ErrorKind::kUsage, "the program '{}' {}", path,
        ::access(path.c_str(), F_OK) == 0 ? "is not executable: chmod +x it" : "does not exist");
  }
  const std::string near = beside + "/" + name;
  if (is_executable_file(near)) return near;
  const char* path = std::getenv("PATH");
  std::istringstream directories(path != nullptr ? path : "");
  for (std::string directory; std::getline(directories, directory, ':');) {
    const std::string candidate = absolute_path(name, directory.empty() ? "." : directory);
    if (is_executable_file(candidate)) return candidate;
  }
  return fail(ErrorKind::kUsage,
              "the program '{}' does not exist: it is neither in {} nor in a directory of PATH",
              name, beside);
}

std::string program_directory() {
  std::error_code error;
  const auto exe = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(".") : exe.parent_path().string();
}

}  // namespace antdt::launcher
