#include "core/os/runtime_dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "core/permutation.h"

namespace antdt {
namespace {

// What removes old files does not count in less than days.
constexpr Duration kTouchEvery = std::chrono::hours(24);

}  // namespace

Status ensure_private_directory(const std::string& path, const char* else_set) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail_errno(ErrorKind::kIo, errno, "making the private directory " + path);
  }
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "looking at the directory " + path);
  }
  if (!S_ISDIR(info.st_mode)) {
    return fail(ErrorKind::kUsage, "{} must be a private directory and is something else", path);
  }
  if (info.st_uid != geteuid()) {
    return fail(ErrorKind::kUsage,
                "{} belongs to user {}, not to you (user {}): set {} to a directory of your own",
                path, info.st_uid, geteuid(), else_set);
  }
  if ((info.st_mode & 077) != 0 && chmod(path.c_str(), 0700) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "making " + path + " private (chmod 700)");
  }
  return {};
}

Result<std::string> runtime_directory() {
  std::string path = fmt::format("/tmp/antdt-{}", geteuid());
  const char* xdg = std::getenv("XDG_RUNTIME_DIR");
  if (xdg != nullptr && *xdg != '\0') {
    path = std::string(xdg) + "/antdt";
  } else if (access("/run", W_OK) == 0) {
    path = "/run/antdt";
  }
  ANTDT_RETURN_IF_ERROR(ensure_private_directory(path));
  return path;
}

// Files may come and go meanwhile.
void keep_from_cleaners(const std::string& directory) {
  const auto touch = [](const char* path) {
    utimensat(AT_FDCWD, path, nullptr, AT_SYMLINK_NOFOLLOW);
  };
  const auto is_ours = [](const char* path) {
    struct stat info {};
    return lstat(path, &info) == 0 && info.st_uid == geteuid();
  };
  touch(directory.c_str());
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(
      directory, std::filesystem::directory_options::skip_permission_denied, error);
  for (; !error && it != std::filesystem::end(it); it.increment(error)) {
    touch(it->path().c_str());
    if (!is_ours(it->path().c_str())) it.disable_recursion_pending();
  }
}

void KeptDirectories::tend(MonoTime now) {
  if (now < next_) return;
  next_ = now + kTouchEvery;
  for (const std::string& directory : directories_) keep_from_cleaners(directory);
}

// Paths of sockets must be short, but job ids may be long.
std::string process_socket(const std::string& agent_socket, const std::string& job, Member member) {
  std::uint64_t hash = 0;
  for (const char c : job) hash = combine_seed(hash, static_cast<unsigned char>(c));
  const std::string directory = agent_socket.substr(0, agent_socket.rfind('/'));
  return fmt::format("{}/p-{:016x}-{}.{}", directory, hash, member.worker, member.attempt);
}

void remove_process_socket(const std::string& agent_socket, const std::string& job, Member member) {
  const std::string path = process_socket(agent_socket, job, member);
  unlink(path.c_str());
  unlink((path + ".lock").c_str());
}

}  // namespace antdt
