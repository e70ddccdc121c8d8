#include "antdtd/shim/cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <sstream>
#include <thread>

#include "core/clock.h"
#include "core/os/fs.h"

namespace antdt::antdtd {
namespace {

constexpr const char* kAgentGroup = "/antdt-agent";
constexpr long kCgroup2Magic = 0x63677270;
constexpr Duration kLookAgain = std::chrono::milliseconds(5);
constexpr Duration kPatience = std::chrono::seconds(2);

Status write_control(const std::string& path, std::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return fail_errno(ErrorKind::kIo, errno, "opening " + path);
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  close(fd);
  if (written) return {};
  return fail_errno(ErrorKind::kIo, error, fmt::format("writing '{}' to {}", text, path));
}

bool is_cgroup(const std::string& path) {
  struct statfs info {};
  return statfs(path.c_str(), &info) == 0 && info.f_type == kCgroup2Magic;
}

bool has_word(const std::string& path, std::string_view word) {
  std::istringstream words(read_file(path).value_or(""));
  for (std::string found; words >> found;) {
    if (found == word) return true;
  }
  return false;
}

// systemd marks a cgroup in this way if it hands it over with Delegate=yes.
bool is_delegated(const std::string& group) {
  for (const char* name : {"user.delegate", "trusted.delegate"}) {
    std::array<char, 2> value{};
    if (getxattr(group.c_str(), name, value.data(), value.size()) == 1 && value[0] == '1') {
      return true;
    }
  }
  return false;
}

// The mount point of the version 2 hierarchy, and which of its cgroups is seen there: fields 4 and
// 5 of the line in /proc/self/mountinfo.
struct Mount {
  std::string group;
  std::string directory;
};
std::optional<Mount> find_mount() {
  std::istringstream lines(read_file("/proc/self/mountinfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream fields(line);
    std::string skipped;
    Mount mount;
    fields >> skipped >> skipped >> skipped >> mount.group >> mount.directory;
    return mount;
  }
  return std::nullopt;
}

// The path of this process's cgroup as it is seen here; "" if there is none.
std::string own_group() {
  const auto mount = find_mount();
  std::istringstream lines(read_file("/proc/self/cgroup").value_or(""));
  for (std::string line; mount && std::getline(lines, line);) {
    constexpr std::string_view kVersion2 = "0::";
    if (!line.starts_with(kVersion2)) continue;
    std::string group = line.substr(kVersion2.size());
    if (mount->group != "/" && group.starts_with(mount->group)) {
      group.erase(0, mount->group.size());
    }
    return mount->directory + (group == "/" ? "" : group);
  }
  return {};
}

// Whether a process can be put into `group`, which only a try can show.
Status try_to_enter(const std::string& group) {
  const std::string procs = group + "/cgroup.procs";
  const pid_t pid = fork();
  if (pid == 0) _exit(enter_cgroup(procs.c_str()) ? 0 : std::min(errno, 255));
  int status = 0;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail_errno(ErrorKind::kIo, pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : errno,
                    "putting a process into " + group);
}

}  // namespace

Result<std::string> delegated_cgroup() {
  std::string group = own_group();
  if (group.empty()) {
    return fail(ErrorKind::kUnreachable, "cgroups of version 2 are not mounted here");
  }
  // An agent that was started by a shim of an earlier agent is in that agent's cgroup; what systemd
  // runs beside a unit's program is in ".control".
  for (const std::string_view inner : {kAgentGroup, "/.control"}) {
    if (group.ends_with(inner)) group.erase(group.size() - inner.size());
  }
  if (is_delegated(group) && access(group.c_str(), W_OK) == 0) return group;
  return fail(ErrorKind::kRefused,
              "its cgroup {} was not handed to it (Delegate=yes of systemd, or --cgroup)", group);
}

Result<CgroupRoot> CgroupRoot::open(const std::string& path) {
  if (!is_cgroup(path)) {
    return fail(ErrorKind::kUsage, "{} is no directory of a cgroup file system (version 2)", path);
  }
  CgroupRoot root(path);
  if (own_group() == path) {
    const std::string aside = path + kAgentGroup;
    if (mkdir(aside.c_str(), 0755) != 0 && errno != EEXIST) {
      return fail_errno(ErrorKind::kIo, errno, "making the cgroup " + aside);
    }
    ANTDT_RETURN_IF_ERROR(write_control(aside + "/cgroup.procs", "0"));
  }
  // One by one, because a controller that the machine lacks must not prevent the other.
  for (const char* controller : {"+memory", "+cpu"}) {
    [[maybe_unused]] const Status handed_down =
        write_control(path + "/cgroup.subtree_control", controller);
  }
  root.memory_ = has_word(path + "/cgroup.subtree_control", "memory");
  root.cpu_ = has_word(path + "/cgroup.subtree_control", "cpu");

  const std::string probe = fmt::format("{}/antdt-probe-{}", path, getpid());
  if (mkdir(probe.c_str(), 0755) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "making the cgroup " + probe);
  }
  const Status entered = try_to_enter(probe);
  remove_cgroup(probe, kPatience);
  if (!entered) return tl::unexpected(entered.error());
  return root;
}

Status release_cgroup() {
  ANTDT_TRY(const std::string group, delegated_cgroup());
  for (const char* controller : {"memory", "cpu"}) {
    const std::string file = group + "/cgroup.subtree_control";
    if (has_word(file, controller)) {
      ANTDT_RETURN_IF_ERROR(write_control(file, std::string("-") + controller));
    }
  }
  return {};
}

Result<std::string> CgroupRoot::make(const ProcessKey& key, const CgroupLimits& limits,
                                     Duration patience) const {
  const std::string group = fmt::format("{}/antdt-{}-{}", path_, key.job, file_name(key.member));
  if (access(group.c_str(), F_OK) == 0 && !remove_cgroup(group, patience)) {
    return fail(ErrorKind::kIo, "the cgroup {} is in use and cannot be removed", group);
  }
  if (mkdir(group.c_str(), 0755) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "making the cgroup " + group);
  }
  ANTDT_RETURN_IF_ERROR(limit(group, limits));
  return group;
}

Status CgroupRoot::limit(const std::string& group, const CgroupLimits& limits) const {
  if (memory_ && limits.memory_bytes > 0) {
    ANTDT_RETURN_IF_ERROR(
        write_control(group + "/memory.max", fmt::to_string(limits.memory_bytes)));
    // Swap would only turn a worker that needs too much memory into a slow one, and a worker that
    // lost one of its processes cannot go on. Either file may be missing.
    [[maybe_unused]] const Status swap = write_control(group + "/memory.swap.max", "0");
    [[maybe_unused]] const Status together = write_control(group + "/memory.oom.group", "1");
  }
  if (cpu_ && limits.cpus > 0) {
    constexpr double kPeriodUs = 100000;
    return write_control(
        group + "/cpu.max",
        fmt::format("{} {}", std::llround(limits.cpus * kPeriodUs), std::llround(kPeriodUs)));
  }
  return {};
}

void kill_cgroup(const std::string& group) {
  if (group.empty()) return;
  [[maybe_unused]] const Status killed = write_control(group + "/cgroup.kill", "1");
}

std::string memory_events(const std::string& group) {
  return group.empty() ? "" : read_file(group + "/memory.events").value_or("");
}

CgroupRemoval try_to_remove_cgroup(const std::string& group) {
  const auto is_gone = [&group] { return rmdir(group.c_str()) == 0 || errno == ENOENT; };
  if (group.empty() || is_gone()) return CgroupRemoval::kRemoved;
  if (errno == EBUSY) kill_cgroup(group);
  if (is_gone()) return CgroupRemoval::kRemoved;
  return errno == EBUSY ? CgroupRemoval::kBusy : CgroupRemoval::kFailed;
}

bool remove_cgroup(const std::string& group, Duration wait) {
  const SteadyClock clock;
  const MonoTime until = clock.now() + wait;
  CgroupRemoval removal = try_to_remove_cgroup(group);
  while (removal == CgroupRemoval::kBusy && clock.now() < until) {
    std::this_thread::sleep_for(kLookAgain);
    removal = try_to_remove_cgroup(group);
  }
  return removal == CgroupRemoval::kRemoved;
}

bool enter_cgroup(const char* procs, int opened) {
  if (opened >= 0) return write(opened, "0", 1) == 1;
  const int fd = open(procs, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool entered = write(fd, "0", 1) == 1;
  const int error = errno;
  close(fd);
  errno = error;
  return entered;
}

}  // namespace antdt::antdtd
