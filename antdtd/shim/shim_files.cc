#include "antdtd/shim/shim_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>
#include <vector>

#include "core/os/fs.h"
#include "core/os/owned_fd.h"

namespace antdt::antdtd {
namespace {

// Reads the number at the beginning of `text`, and moves `text` past it and one more character.
template <class T>
std::optional<T> take_number(std::string_view& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const auto used = static_cast<std::size_t>(end - text.data());
  text.remove_prefix(std::min(used + 1, text.size()));
  return value;
}

std::optional<ProcessIdentity> take_identity(std::string_view& text, std::string_view label) {
  if (!text.starts_with(label)) return std::nullopt;
  text.remove_prefix(label.size());
  const auto pid = take_number<pid_t>(text);
  if (!pid) return std::nullopt;
  const auto start_time = take_number<std::uint64_t>(text);
  if (!start_time) return std::nullopt;
  return ProcessIdentity{*pid, *start_time};
}

}  // namespace

std::string format_pid_file(const PidFile& pids) {
  return fmt::format("shim {} {}\nworker {} {}\n", pids.shim.pid, pids.shim.start_time,
                     pids.worker.pid, pids.worker.start_time);
}

std::optional<PidFile> parse_pid_file(std::string_view text) {
  if (!text.ends_with('\n')) return std::nullopt;
  const auto shim = take_identity(text, "shim ");
  if (!shim) return std::nullopt;
  const auto worker = take_identity(text, "worker ");
  if (!worker) return std::nullopt;
  return PidFile{*shim, *worker};
}

std::string format_exit(const ExitStatus& status) {
  std::string first;
  if (!status.error.empty()) {
    first = "error " + status.error;
  } else if (status.signal != 0) {
    first = fmt::format("signal {}", status.signal);
  } else {
    first = fmt::format("code {}", status.code);
  }
  if (status.error.empty()) {
    if (status.orphaned) {
      first += " orphaned";
    } else if (!status.oom.empty()) {
      first += " oom " + status.oom;
    }
  }
  std::replace(first.begin(), first.end(), '\n', ' ');
  return first + "\n" + status.last_lines;
}

Result<ExitStatus> parse_exit(std::string_view text) {
  const std::size_t newline = text.find('\n');
  if (newline == std::string_view::npos) {
    return fail(ErrorKind::kCorrupt, "an exit file without a whole first line");
  }
  std::string_view first = text.substr(0, newline);
  ExitStatus status;
  status.last_lines = std::string(text.substr(newline + 1));
  const auto after = [&first](std::string_view label) {
    if (!first.starts_with(label)) return false;
    first.remove_prefix(label.size());
    return true;
  };
  if (after("error ")) {
    status.error = std::string(first);
    return status;
  }
  std::int32_t* field = nullptr;
  if (after("signal ")) field = &status.signal;
  if (field == nullptr && after("code ")) field = &status.code;
  const auto number = take_number<std::int32_t>(first);
  if (field == nullptr || !number) {
    return fail(ErrorKind::kCorrupt, "an exit file that begins with '{}'", text.substr(0, newline));
  }
  *field = *number;
  if (after("oom ")) status.oom = std::string(first);
  status.orphaned = first == "orphaned";
  return status;
}

Status save_exit_file(const std::string& dir, const ExitStatus& status) {
  const std::string text = format_exit(status);
  const std::string part = exit_part_file(dir);
  const OwnedFd file(open(part.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW));
  if (!file.is_open()) return write_file_atomic(exit_file(dir), text, 0600);
  if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      fsync(file.get()) != 0 || rename(part.c_str(), exit_file(dir).c_str()) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "writing " + exit_file(dir));
  }
  return sync_directory(dir);
}

// ------------------------------------------------------------------ PidLock

Result<PidLock> PidLock::take(const std::string& dir) {
  const std::string path = pid_file(dir);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return fail_errno(ErrorKind::kUnreachable, errno, "opening " + path);
  PidLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return fail_errno(ErrorKind::kRefused, errno, "locking " + path);
  }
  struct stat info {};
  if (fstat(fd, &info) != 0 || info.st_nlink == 0) {
    return fail(ErrorKind::kUnreachable, "{} was removed", path);
  }
  return lock;
}

PidLock::PidLock(PidLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

PidLock::~PidLock() {
  if (fd_ >= 0) close(fd_);
}

Status PidLock::write(const PidFile& pids) {
  const std::string text = format_pid_file(pids);
  if (pwrite(fd_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return fail_errno(ErrorKind::kIo, errno, "writing a pid file");
  }
  return {};
}

}  // namespace antdt::antdtd
