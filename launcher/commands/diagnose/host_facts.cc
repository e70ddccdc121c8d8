#include "launcher/commands/diagnose/host_facts.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <sstream>

#include "core/os/fs.h"

namespace antdt::cli {
namespace {

std::string text_in(const std::string& path) {
  const auto text = read_file(path);
  return text ? *text : fmt::format("({})\n", text.error().message);
}

// The lines of `path` that begin with one of `names`.
std::string lines_with(const std::string& path, const std::vector<std::string>& names) {
  std::istringstream lines(text_in(path));
  std::string found;
  for (std::string line; std::getline(lines, line);) {
    for (const std::string& name : names) {
      if (line.starts_with(name)) found += line + "\n";
    }
  }
  return found;
}

std::string room_of(const std::string& directory) {
  struct statvfs room {};
  if (::statvfs(directory.c_str(), &room) != 0) {
    return fmt::format("{}: cannot be asked\n", directory);
  }
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  const auto unit = static_cast<double>(room.f_frsize);
  return fmt::format("{}: {:.2f} of {:.2f} GiB free, {} of {} files free\n", directory,
                     static_cast<double>(room.f_bavail) * unit / kGiB,
                     static_cast<double>(room.f_blocks) * unit / kGiB, room.f_favail, room.f_files);
}

// The limits of the control group of this process, as version 2 of control groups has them.
std::string control_group_facts() {
  const std::string own = text_in("/proc/self/cgroup");
  std::string text = own;
  const std::size_t at = own.find("0::");
  if (at == std::string::npos) return text;
  const std::string path = own.substr(at + 3, own.find('\n', at) - at - 3);
  for (const std::string_view name : {"cpu.max", "memory.max", "pids.max"}) {
    if (const auto limit = read_file(fmt::format("/sys/fs/cgroup{}/{}", path, name))) {
      text += fmt::format("{}: {}", name, *limit);
    }
  }
  return text;
}

}  // namespace

std::string version_facts(const std::string& antdt_version) {
  utsname system{};
  ::uname(&system);
  return fmt::format("{}\ncompiled by {}\nC library {}\n{} {} {}\n{}", antdt_version, __VERSION__,
                     gnu_get_libc_version(), system.sysname, system.release, system.machine,
                     lines_with("/etc/os-release", {"PRETTY_NAME="}));
}

std::string host_facts(const std::vector<std::string>& directories) {
  std::string text =
      fmt::format("written at {:%Y-%m-%dT%H:%M:%S}Z\n\n", fmt::gmtime(std::time(nullptr)));
  text += fmt::format("processors: {} of {}\n", ::sysconf(_SC_NPROCESSORS_ONLN),
                      ::sysconf(_SC_NPROCESSORS_CONF));
  text += "load: " + text_in("/proc/loadavg");
  text += lines_with("/proc/meminfo",
                     {"MemTotal", "MemAvailable", "SwapTotal", "SwapFree", "HugePages_", "Shmem:"});
  text += "\nfilesystems\n";
  for (const std::string& directory : directories) text += room_of(directory);
  text += room_of("/dev/shm");
  text += "\ncontrol group\n" + control_group_facts();
  text += "\nlimits of antdt diagnose\n" + text_in("/proc/self/limits");
  return text;
}

}  // namespace antdt::cli
