#include "antdtd/inspect/host_facts.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>

#include "antdtd/shim/cgroup.h"
#include "core/accelerator/find_library.h"
#include "core/os/fs.h"
#include "core/os/output_of.h"
#include "core/os/user.h"

namespace antdt::antdtd {
namespace {

std::uint64_t limit_of(rlim_t limit) {
  return limit == RLIM_INFINITY ? std::numeric_limits<std::uint64_t>::max() : limit;
}

void read_limits(wire::FileHostTold& told) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    told.open_files = limit_of(limit.rlim_cur);
    told.open_files_hard = limit_of(limit.rlim_max);
  }
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0) told.memlock_bytes = limit_of(limit.rlim_cur);
}

void read_shared_memory(wire::FileHostTold& told, const std::string& root) {
  struct statvfs found {};
  if (::statvfs((root + "/dev/shm").c_str(), &found) != 0) return;
  told.shm_bytes = static_cast<std::uint64_t>(found.f_blocks) * found.f_frsize;
  told.shm_free = static_cast<std::uint64_t>(found.f_bavail) * found.f_frsize;
}

// "always [madvise] never": the word in brackets is in force.
std::string huge_pages(const std::string& root) {
  const auto text = read_file(root + "/sys/kernel/mm/transparent_hugepage/enabled");
  if (!text) return "";
  const std::size_t begin = text->find('[');
  const std::size_t end = text->find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return "";
  return text->substr(begin + 1, end - begin - 1);
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug …": the first word that
// begins with a digit and has a dot. (The open module has other words before it.)
std::string driver_version(const std::string& root) {
  const auto text = read_file(root + "/proc/driver/nvidia/version");
  if (!text) return "";
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = std::min(text->find_first_of(" \t\n", at), text->size());
    const std::string word = text->substr(at, end - at);
    if (!word.empty() && word.front() >= '0' && word.front() <= '9' &&
        word.find('.') != std::string::npos) {
      return word;
    }
    at = end + 1;
  }
  return "";
}

// The libraries are not loaded: what they do then is not known here, and they are other people's.
void find_libraries(wire::FileHostTold& told, const std::string& root) {
  const accelerator::Environment environment = accelerator::own_environment();
  const auto nccl = accelerator::installed_nccl(environment, root);
  told.nccl = nccl.path;
  told.nccl_version = nccl.version;
  const auto cudart = accelerator::installed_cudart(environment, root);
  told.cudart = cudart.path;
  told.cudart_version = cudart.version;
}

// /dev/nvidia0, /dev/nvidia1, …
std::uint32_t devices(const std::string& root) {
  constexpr std::string_view kDevice = "nvidia";
  std::uint32_t count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it(root + "/dev", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool numbered = name.starts_with(kDevice) && name.size() > kDevice.size() &&
                          name.find_first_not_of("0123456789", kDevice.size()) == std::string::npos;
    if (numbered) ++count;
  }
  return count;
}

bool has_infiniband(const std::string& root) {
  std::error_code error;
  const std::filesystem::directory_iterator first(root + "/sys/class/infiniband", error);
  return !error && first != std::filesystem::directory_iterator();
}

// An agent that uses cgroups has moved itself, and so this child, into "antdt-agent" below the
// root of the workers' cgroups. Another user's process may not ask for more.
void read_cgroup(wire::FileHostTold& told, const std::string& root) {
  constexpr std::string_view kAside = "/antdt-agent";
  const auto text = read_file(root + "/proc/self/cgroup");
  const std::size_t begin = text ? text->find("0::") : std::string::npos;
  if (begin != std::string::npos) {
    const std::string own = text->substr(begin + 3, text->find('\n', begin) - begin - 3);
    if (own.ends_with(kAside)) {
      told.cgroup = own.substr(0, own.size() - kAside.size());
      return;
    }
  }
  const Result<std::string> handed_over = delegated_cgroup();
  if (handed_over) {
    told.cgroup = *handed_over;
  } else {
    told.cgroup_error = handed_over.error().message;
  }
}

// The unit forbids this call to agent and workers (ProtectClock=), and then timedated makes it.
bool clock_is_synchronized() {
  timex asked{};
  const int state = ::adjtimex(&asked);
  if (state < 0 && errno == EPERM) {
    constexpr Duration kPatience = std::chrono::seconds(3);
    const auto told =
        output_of({"timedatectl", "show", "--property=NTPSynchronized", "--value"}, kPatience);
    return told && *told == "yes";
  }
  return state >= 0 && state != TIME_ERROR && (asked.status & STA_UNSYNC) == 0;
}

// The parent is the agent. What it executes is readable for its own user only; "(deleted)" is what
// the kernel appends for a file that was replaced.
bool agent_was_replaced(const std::string& root) {
  std::array<char, 4096> path{};
  const std::string link = root + "/proc/" + std::to_string(::getppid()) + "/exe";
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
  return size > 0 &&
         std::string_view(path.data(), static_cast<std::size_t>(size)).ends_with(" (deleted)");
}

// A pipe is not opened, as that may wait.
wire::FileFact fact_of(const std::string& path) {
  wire::FileFact fact{path, 0, {}};
  struct stat found {};
  if (!path.starts_with('/')) {
    fact.error = "the path is not absolute";
  } else if (::stat(path.c_str(), &found) != 0 || ::access(path.c_str(), R_OK) != 0) {
    fact.error = std::strerror(errno);
  } else if (S_ISREG(found.st_mode)) {
    fact.bytes = static_cast<std::uint64_t>(found.st_size);
  }
  return fact;
}

}  // namespace

Result<wire::FileHostTold> host_facts(const wire::FileHost& request, const std::string& root) {
  if (request.files.size() > wire::kMostFilesAsked) {
    return fail(ErrorKind::kUsage, "{} files were asked for, and {} are the most",
                request.files.size(), wire::kMostFilesAsked);
  }
  wire::FileHostTold told;
  told.software = ANTDT_VERSION;
  told.agent_replaced = agent_was_replaced(root);
  told.user = own_user().name;
  told.clock_synchronized = clock_is_synchronized();
  told.huge_pages = huge_pages(root);
  told.infiniband = has_infiniband(root);
  told.driver = driver_version(root);
  find_libraries(told, root);
  told.devices = devices(root);
  read_limits(told);
  read_shared_memory(told, root);
  read_cgroup(told, root);
  for (const std::string& path : request.files) told.files.push_back(fact_of(path));
  return told;
}

wire::FileClockTold clock_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::microseconds>(now).count()};
}

}  // namespace antdt::antdtd
