#include "antdtd/users/user_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>

#include "core/os/fs.h"
#include "core/os/owned_fd.h"
#include "core/os/process.h"

namespace antdt::antdtd {
namespace {

// The real user: field 1 of the line "Uid:" in /proc/<pid>/status.
std::optional<uid_t> owner_of(pid_t pid) {
  const Result<std::string> status = read_file(fmt::format("/proc/{}/status", pid));
  constexpr std::string_view kLabel = "\nUid:\t";
  const std::size_t at = status ? status->find(kLabel) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  uid_t uid = 0;
  const char* begin = status->data() + at + kLabel.size();
  const auto [end, error] = std::from_chars(begin, status->data() + status->size(), uid);
  return error == std::errc() ? std::optional(uid) : std::nullopt;
}

}  // namespace

Result<std::string> read_file_of(uid_t owner, const std::string& path, std::size_t limit) {
  const OwnedFd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.is_open()) return fail_errno(ErrorKind::kIo, errno, "opening " + path);
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return fail_errno(ErrorKind::kIo, errno, "looking at " + path);
  if (!S_ISREG(info.st_mode) || info.st_nlink > 1 ||
      (info.st_uid != owner && info.st_uid != geteuid())) {
    return fail(ErrorKind::kCorrupt, "{} is not a file of the user {} alone", path, owner);
  }
  std::string text(limit, '\0');
  std::size_t size = 0;
  while (size < limit) {
    const ssize_t got = read(file.get(), text.data() + size, limit - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(ErrorKind::kIo, errno, "reading " + path);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

// Sets the mode while this process owns the directory; afterwards that would need another
// capability.
Status give_directory(const UserIdentity& user, const std::string& path) {
  if (chmod(path.c_str(), 0770) == 0 && lchown(path.c_str(), user.uid, getegid()) == 0) return {};
  return fail_errno(ErrorKind::kIo, errno,
                    fmt::format("giving {} to the user {} (CAP_CHOWN)", path, user.name));
}

Status make_file_of(const UserIdentity& user, const std::string& path) {
  const OwnedFd file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) return fail_errno(ErrorKind::kIo, errno, "making " + path);
  if (fchmod(file.get(), 0660) != 0 || fchown(file.get(), user.uid, getegid()) != 0) {
    return fail_errno(ErrorKind::kIo, errno,
                      fmt::format("giving {} to the user {} (CAP_CHOWN)", path, user.name));
  }
  return {};
}

Status ensure_passable_directory(const std::string& path) {
  ANTDT_RETURN_IF_ERROR(make_directories(path, 0711));
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "looking at the directory " + path);
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid()) {
    return fail(ErrorKind::kUsage, "{} must be a directory of the user {}, as whom antdtd runs",
                path, geteuid());
  }
  if ((info.st_mode & 07777) == 0711) return {};
  if (chmod(path.c_str(), 0711) == 0) return {};
  return fail_errno(ErrorKind::kIo, errno, "letting others pass through " + path + " (chmod 711)");
}

std::string who_bars(const std::string& path) {
  std::filesystem::path upwards = path;
  std::string barred;
  for (;; upwards = upwards.parent_path()) {
    struct stat info {};
    if (stat(upwards.c_str(), &info) == 0 && (info.st_mode & S_IXOTH) == 0) {
      barred = upwards.string();
    }
    if (upwards == upwards.parent_path()) return barred;
  }
}

std::string workers_socket_of(const std::string& socket_dir, uid_t user) {
  return fmt::format("{}/u{}/workers.sock", socket_dir, user);
}

std::string bound_socket_of(const std::string& socket_dir, uid_t user) {
  return fmt::format("{}/w{}.sock", socket_dir, user);
}

Status hand_over_socket(const std::string& socket_dir, const UserIdentity& user) {
  const std::string bound = bound_socket_of(socket_dir, user.uid);
  if (lchown(bound.c_str(), user.uid, getegid()) != 0) {
    return fail_errno(ErrorKind::kIo, errno,
                      fmt::format("giving {} to the user {} (CAP_CHOWN)", bound, user.name));
  }
  const std::string directory = fmt::format("{}/u{}", socket_dir, user.uid);
  struct stat info {};
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail_errno(ErrorKind::kIo, errno, "making " + directory);
  }
  if (lstat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) ||
      (info.st_uid != geteuid() && info.st_uid != user.uid)) {
    return fail(ErrorKind::kUsage, "{} must be a directory of the user {}: remove what is there",
                directory, user.name);
  }
  const std::string link = workers_socket_of(socket_dir, user.uid);
  const std::string target = fmt::format("../w{}.sock", user.uid);
  if (symlink(target.c_str(), link.c_str()) != 0 && errno != EEXIST) {
    return fail_errno(ErrorKind::kIo, errno, "making the link " + link);
  }
  if (info.st_uid == user.uid) return {};
  return give_directory(user, directory);
}

Status signal_process_of(uid_t owner, pid_t pid, std::uint64_t start_time, int signal) {
  ANTDT_TRY(const int descriptor, open_pidfd(pid));
  // The descriptor refers to one process: what is found out now is true of the process that is
  // signalled.
  const OwnedFd process(descriptor);
  if (!process_alive(pid, start_time)) {
    return fail(ErrorKind::kUnreachable, "there is no process {}", pid);
  }
  if (owner_of(pid) != owner) {
    return fail(ErrorKind::kRefused, "process {} is not one of the user {}: it gets no signal", pid,
                owner);
  }
  if (syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0) return {};
  return fail_errno(ErrorKind::kIo, errno, fmt::format("sending signal {} to {}", signal, pid));
}

}  // namespace antdt::antdtd
