#include "launcher/start/leftovers.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "core/os/fs.h"

namespace antdt::launcher {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    found.push_back(it->path());
  }
  return found;
}

bool is_locked(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool locked = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return locked;
}

// Uses the system's clock. If that jumps, the cleaning is only done on another day.
bool touched_within(const std::string& path, Duration age) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return false;
  const auto touched = std::chrono::system_clock::from_time_t(info.st_mtime);
  return std::chrono::system_clock::now() - touched < age;
}

bool in_use(const fs::path& socket_dir, Duration age) {
  for (const fs::path& job : entries(socket_dir / "state" / "jobs")) {
    for (const fs::path& process : entries(job)) {
      if (is_locked(process / "pid") || touched_within(process / "claim", age)) return true;
    }
  }
  return false;
}

}  // namespace

std::string private_agent_lock(const std::string& socket_dir) { return socket_dir + "/state/lock"; }

void remove_if_dead(const std::string& socket_dir, Duration age) {
  const std::string state = socket_dir + "/state";
  // An agent that has just begun may not hold its lock yet.
  if (::access(state.c_str(), F_OK) != 0 || touched_within(state, age)) return;
  if (in_use(socket_dir, age)) return;
  // The lock is held during the second check and the removal, so that no agent begins in the
  // directory.
  const auto lock = FileLock::acquire(private_agent_lock(socket_dir));
  if (!lock || in_use(socket_dir, age)) return;
  std::error_code ignored;
  fs::remove_all(socket_dir, ignored);
}

void remove_dead(const std::string& socket_root) {
  for (const fs::path& path : entries(socket_root)) remove_if_dead(path, kSurelyDeadAfter);
}

}  // namespace antdt::launcher
