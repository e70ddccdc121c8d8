#include "launcher/start/user_unit.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "core/os/output_of.h"
#include "core/os/user.h"

namespace antdt::launcher {
namespace {

constexpr Duration kSystemdPatience = std::chrono::seconds(5);
constexpr std::size_t kLongestName = 200;

// Names of units have 255 of certain characters.
std::string unit_of(const std::string& job) {
  std::string name = job.substr(0, kLongestName);
  std::ranges::replace_if(
      name,
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_' && c != '.'; },
      '_');
  return "antdt-" + name + ".scope";
}

int major_of(const std::string& version) {
  int number = 0;
  std::from_chars(version.data(), version.data() + version.size(), number);
  return number;
}

}  // namespace

// systemd-logind keeps lingering in these files, and `loginctl` finds it only of who is logged in.
UserManager ask_user_manager() {
  UserManager manager{false, false, own_user().name, std::string()};
  manager.is_booted = ::access("/run/systemd/system", F_OK) == 0;
  if (!manager.is_booted) return manager;
  manager.is_lingering = ::access(("/var/lib/systemd/linger/" + manager.user).c_str(), F_OK) == 0;
  if (!manager.is_lingering) return manager;
  manager.version =
      output_of({"systemctl", "--user", "show", "--property=Version", "--value"}, kSystemdPatience);
  return manager;
}

DetachedPlace detached_place(const UserManager& manager, const std::string& job) {
  DetachedPlace place;
  if (!manager.is_booted) return place;
  if (!manager.is_lingering) {
    place.remark = fmt::format(
        "lingering is off for {}, so systemd may end the job when you log out; for the next one: "
        "loginctl enable-linger {}",
        manager.user, manager.user);
    return place;
  }
  if (!manager.version) {
    place.remark = fmt::format(
        "your service manager does not answer, so the job runs in this session, and ends with it "
        "if "
        "KillUserProcesses=yes: {}",
        manager.version.error().message);
    return place;
  }
  place.unit = unit_of(job);
  place.launcher = {"systemd-run",
                    "--user",
                    "--scope",
                    "--quiet",
                    "--collect",
                    "--unit=" + place.unit,
                    "--description=AntDT job " + job};
  // From this version on, a scope would end with the first worker that runs out of memory.
  constexpr int kHasPolicy = 253;
  if (major_of(*manager.version) >= kHasPolicy) {
    place.launcher.emplace_back("--property=OOMPolicy=continue");
  }
  place.launcher.emplace_back("--");
  return place;
}

}  // namespace antdt::launcher
