#include "launcher/model/model_aside.h"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "core/os/fs.h"
#include "launcher/start/paths.h"

namespace antdt::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::array kWaiting{SIGINT, SIGTERM, SIGHUP};

// The path made absolute, without a trailing slash, and with links resolved.
std::string resolved(const std::string& place) {
  std::error_code error;
  const std::string absolute =
      fs::path(launcher::absolute_path(place, ".") + "/").parent_path().lexically_normal();
  const fs::path real = fs::canonical(absolute, error);
  return error ? absolute : real.string();
}

// A directory cannot be renamed onto a mount point.
bool is_mount_point(const std::string& path, const std::string& parent) {
  struct stat of_path {};
  struct stat of_parent {};
  return ::stat(path.c_str(), &of_path) == 0 && ::stat(parent.c_str(), &of_parent) == 0 &&
         (of_path.st_dev != of_parent.st_dev || of_path.st_ino == of_parent.st_ino);
}

Status check_resolved(const std::string& place) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(place, error))) return {};
  if (!fs::is_directory(place, error)) {
    return fail(ErrorKind::kUsage, "{} is there and is no directory: name another --out", place);
  }
  if (!fs::is_empty(place, error)) {
    return fail(ErrorKind::kUsage,
                "the directory {} is not empty{}: nothing in it is replaced; remove it, or name "
                "another --out",
                place, error ? " or cannot be read" : "");
  }
  if (!is_mount_point(place, fs::path(place).parent_path())) return {};
  return fail(ErrorKind::kUsage,
              "a file system is mounted on {}: name a directory below it as --out", place);
}

}  // namespace

Status AsideDirectory::check(const std::string& place) {
  if (place.empty()) return fail(ErrorKind::kUsage, "--out needs the name of a directory");
  return check_resolved(resolved(place));
}

Result<AsideDirectory> AsideDirectory::make_for(const std::string& wanted) {
  ANTDT_RETURN_IF_ERROR(check(wanted));
  const std::string place = resolved(wanted);
  const std::string parent = fs::path(place).parent_path();
  ANTDT_RETURN_IF_ERROR(make_directories(parent));
  std::string outer = parent + "/." + fs::path(place).filename().string() + ".export-XXXXXX";
  if (::mkdtemp(outer.data()) == nullptr) {
    return fail_errno(ErrorKind::kIo, errno, "making a directory in " + parent);
  }
  AsideDirectory aside(place, std::move(outer));
  ANTDT_RETURN_IF_ERROR(make_directories(aside.path(), 0777));  // the umask applies
  return aside;
}

AsideDirectory::AsideDirectory(AsideDirectory&& other) noexcept
    : place_(std::move(other.place_)), outer_(std::exchange(other.outer_, std::string())) {}

AsideDirectory::~AsideDirectory() {
  if (outer_.empty()) return;
  std::error_code ignored;
  fs::remove_all(outer_, ignored);
}

Status AsideDirectory::check_room(std::uint64_t bytes) const {
  std::error_code error;
  const fs::space_info space = fs::space(outer_, error);
  if (error || space.available >= bytes) return {};
  const auto mib = [](std::uintmax_t of) { return static_cast<double>(of) / (1 << 20); };
  return fail(ErrorKind::kIo,
              "{} needs {:.1f} MiB, and there are {:.1f} MiB free: make room, or name an --out "
              "elsewhere",
              place_, mib(bytes), mib(space.available));
}

Status AsideDirectory::put_in_place() {
  ANTDT_RETURN_IF_ERROR(sync_directory(path()));
  std::error_code error;
  fs::rename(path(), place_, error);
  if (error) {
    return fail_errno(ErrorKind::kIo, error.value(),
                      fmt::format("rename {} to {}", path(), place_));
  }
  return sync_directory(fs::path(place_).parent_path());
}

SignalsWait::SignalsWait() {
  ::sigemptyset(&waiting_);
  for (const int signal : kWaiting) ::sigaddset(&waiting_, signal);
  ::sigprocmask(SIG_BLOCK, &waiting_, &before_);
}

SignalsWait::~SignalsWait() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

bool SignalsWait::any() const {
  sigset_t come{};
  ::sigpending(&come);
  for (const int signal : kWaiting) {
    if (::sigismember(&come, signal) == 1) return true;
  }
  return false;
}

}  // namespace antdt::cli
