#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <tuple>
#include <utility>

#include "core/os/fs.h"

namespace antdt {

namespace {

std::optional<pid_t> read_pid(int fd) {
  std::array<char, 16> text{};
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  pid_t pid = 0;
  if (size <= 0) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + size, pid);
  if (error != std::errc() || pid <= 0) return std::nullopt;
  return pid;
}

// Whether the name still refers to the open file. Its last owner may have removed it between our
// open and our lock.
bool is_at(int fd, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return fstat(fd, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

// The first line of a lock file; the others are what its owner says.
std::string line_of_pid() { return fmt::format("{}\n", getpid()); }

Status write_pid(int fd, const std::string& path) {
  const std::string text = line_of_pid();
  if (ftruncate(fd, 0) != 0 ||
      pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return fail_errno(ErrorKind::kIo, errno, "writing the lock file " + path);
  }
  return {};
}

tl::unexpected<Error> held_by_another(int fd, const std::string& path) {
  const std::optional<pid_t> owner = read_pid(fd);
  return fail(ErrorKind::kRefused, "{} is in use by {}: end that process first", path,
              owner ? fmt::format("process {}", *owner) : "another process");
}

}  // namespace

Result<FileLock> FileLock::acquire(const std::string& path) {
  for (;;) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return fail_errno(ErrorKind::kIo, errno, "opening the lock file " + path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      auto refusal = error == EWOULDBLOCK ? held_by_another(fd, path)
                                          : fail_errno(ErrorKind::kIo, error, "locking " + path);
      close(fd);
      return refusal;
    }
    if (!is_at(fd, path)) {
      close(fd);
      continue;
    }
    FileLock lock(path, fd);
    ANTDT_RETURN_IF_ERROR(write_pid(fd, path));
    return lock;
  }
}

std::optional<pid_t> FileLock::owner(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::optional<pid_t> pid;
  if (flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) pid = read_pid(fd);
  close(fd);
  return pid;
}

// Written as a whole, so that the pid is there all the time.
void FileLock::say(std::string_view text) {
  const std::string whole = line_of_pid().append(text);
  const ssize_t written = pwrite(fd_, whole.data(), whole.size(), 0);
  if (written >= 0) std::ignore = ftruncate(fd_, written);
}

std::string FileLock::said(const std::string& path) {
  const Result<std::string> whole = read_file(path);
  if (!whole) return "";
  const std::size_t end = whole->find('\n');
  return end == std::string::npos ? "" : whole->substr(end + 1);
}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  if (this != &other) {
    release();
    path_ = std::move(other.path_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

FileLock::~FileLock() { release(); }

void FileLock::release() {
  if (fd_ < 0) return;
  // The file is removed while it is locked: a process that locks the removed file notices that it
  // has no name any more, and tries again.
  if (is_at(fd_, path_)) unlink(path_.c_str());
  close(std::exchange(fd_, -1));
}

}  // namespace antdt
