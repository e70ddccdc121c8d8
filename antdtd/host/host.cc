#include "antdtd/host/host.h"

#include <arpa/inet.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <vector>

#include "core/os/fs.h"
#include "core/os/net.h"

namespace antdt::antdtd {
namespace {

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, value).ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> read_number(const std::string& path) {
  const Result<std::string> text = read_file(path);
  return text ? parse_number(*text) : std::nullopt;
}

// The cgroup of this process in a hierarchy: "0::/path" for version 2 (controller ""),
// "4:memory:/path" for a controller of version 1.
std::string cgroup_path(const std::string& root, const std::string& controller) {
  const Result<std::string> text = read_file(root + "/proc/self/cgroup");
  if (!text) return {};
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (names.find("," + controller + ",") != std::string::npos) return line.substr(second + 1);
  }
  return {};
}

// The directories from the process's own cgroup up to the root of `hierarchy`. A limit in any of
// them applies.
std::vector<std::string> cgroup_directories(const std::string& hierarchy, std::string path) {
  std::vector<std::string> directories;
  while (!path.empty() && path != "/") {
    directories.push_back(hierarchy + path);
    path.resize(path.find_last_of('/'));
  }
  directories.push_back(hierarchy);
  return directories;
}

double limit_cpus(const std::string& root, double cpus) {
  const auto apply = [&cpus](std::optional<std::int64_t> quota,
                             std::optional<std::int64_t> period) {
    if (!quota || !period || *quota <= 0 || *period <= 0) return;
    cpus = std::min(cpus, static_cast<double>(*quota) / static_cast<double>(*period));
  };
  const std::string hierarchy = root + "/sys/fs/cgroup";
  for (const std::string& dir : cgroup_directories(hierarchy, cgroup_path(root, ""))) {
    const Result<std::string> text = read_file(dir + "/cpu.max");  // "max 100000", "150000 100000"
    const std::size_t space = text ? text->find(' ') : std::string::npos;
    if (space == std::string::npos) continue;
    apply(parse_number(*text), parse_number(std::string_view(*text).substr(space + 1)));
  }
  for (const std::string& dir : cgroup_directories(hierarchy + "/cpu", cgroup_path(root, "cpu"))) {
    apply(read_number(dir + "/cpu.cfs_quota_us"), read_number(dir + "/cpu.cfs_period_us"));
  }
  return cpus;
}

std::uint64_t limit_memory(const std::string& root, std::uint64_t bytes) {
  const auto apply = [&bytes](const std::string& file) {
    const auto limit = read_number(file);  // "max" is not a number
    if (limit && *limit > 0) bytes = std::min(bytes, static_cast<std::uint64_t>(*limit));
  };
  const std::string hierarchy = root + "/sys/fs/cgroup";
  for (const std::string& dir : cgroup_directories(hierarchy, cgroup_path(root, ""))) {
    apply(dir + "/memory.max");
  }
  for (const std::string& dir :
       cgroup_directories(hierarchy + "/memory", cgroup_path(root, "memory"))) {
    apply(dir + "/memory.limit_in_bytes");
  }
  return bytes;
}

std::uint64_t total_memory(const std::string& root) {
  const Result<std::string> text = read_file(root + "/proc/meminfo");
  if (!text) return 0;
  const std::size_t at = text->find("MemTotal:");
  const std::size_t digits = text->find_first_of("0123456789", at);
  if (at == std::string::npos || digits == std::string::npos) return 0;
  const auto kib = parse_number(std::string_view(*text).substr(digits));
  return kib ? static_cast<std::uint64_t>(*kib) * 1024 : 0;
}

double usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<double>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

Capacity probe_capacity(const std::string& root) {
  return {limit_cpus(root, usable_cpus()), limit_memory(root, total_memory(root)),
          count_devices(root)};
}

std::uint32_t count_devices(const std::string& root) {
  constexpr std::string_view kPrefix = "nvidia";
  std::uint32_t count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it(root + "/dev", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool numbered = name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
                          name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos;
    if (numbered) ++count;
  }
  return count;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

Result<std::uint16_t> free_port(const std::string& address) {
  in6_addr six{};
  in_addr four{};
  const bool is_number = inet_pton(AF_INET6, address.c_str(), &six) == 1 ||
                         inet_pton(AF_INET, address.c_str(), &four) == 1;
  ANTDT_TRY(const OwnedFd socket, listen_tcp(is_number ? address : "0.0.0.0", 0));
  ANTDT_TRY(const std::string at, local_address(socket));
  return static_cast<std::uint16_t>(std::stoul(at.substr(at.rfind(':') + 1)));
}

}  // namespace antdt::antdtd
