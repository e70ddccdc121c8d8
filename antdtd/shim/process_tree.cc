#include "antdtd/shim/process_tree.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "core/os/fs.h"
#include "core/os/process.h"

namespace antdt::antdtd {
namespace {

std::vector<pid_t> all_pids() {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), &closedir);
  if (!proc) return pids;
  while (const dirent* entry = readdir(proc.get())) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && end == name.data() + name.size()) pids.push_back(pid);
  }
  return pids;
}

// Fields 4 and 22 of /proc/<pid>/stat, read at once so that both are of the same process.
struct Living {
  pid_t parent = 0;
  std::uint64_t start_time = 0;
};

std::optional<Living> living(pid_t pid) {
  const Result<std::string> stat = read_file(fmt::format("/proc/{}/stat", pid));
  if (!stat) return std::nullopt;
  // The second field is the program's name in parentheses, which may contain any characters.
  const std::size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= stat->size()) return std::nullopt;
  const char state = (*stat)[name_end + 2];
  if (state == 'Z' || state == 'X') return std::nullopt;
  const char* const end = stat->data() + stat->size();
  const auto number = [&](std::size_t at, auto& value) {
    return std::from_chars(stat->data() + at, end, value).ec == std::errc();
  };
  std::size_t at = name_end + 4;
  Living found;
  if (!number(at, found.parent)) return std::nullopt;
  for (int field = 4; field < 22; ++field) at = stat->find(' ', at) + 1;
  if (!number(at, found.start_time)) return std::nullopt;
  return found;
}

struct Descendant {
  pid_t pid = 0;
  std::uint64_t start_time = 0;
};

std::vector<Descendant> tree_below(pid_t root) {
  std::unordered_map<pid_t, std::vector<Descendant>> children;
  for (const pid_t pid : all_pids()) {
    if (const auto found = living(pid)) {
      children[found->parent].push_back({pid, found->start_time});
    }
  }
  std::vector<Descendant> found;
  std::vector<pid_t> frontier = {root};
  while (!frontier.empty()) {
    const pid_t parent = frontier.back();
    frontier.pop_back();
    for (const Descendant& child : children[parent]) {
      found.push_back(child);
      frontier.push_back(child.pid);
    }
  }
  return found;
}

bool has_marks(pid_t pid, const std::vector<std::string>& marks) {
  const Result<std::string> environment = read_file(fmt::format("/proc/{}/environ", pid));
  if (!environment || environment->empty()) return false;
  const std::string padded = '\0' + *environment + '\0';
  return std::all_of(marks.begin(), marks.end(), [&padded](const std::string& mark) {
    return padded.find('\0' + mark + '\0') != std::string::npos;
  });
}

}  // namespace

std::vector<pid_t> descendants(pid_t root) {
  std::vector<pid_t> pids;
  for (const Descendant& d : tree_below(root)) pids.push_back(d.pid);
  return pids;
}

std::vector<pid_t> signal_descendants(pid_t root, int signal) {
  std::vector<pid_t> pids;
  for (const Descendant& d : tree_below(root)) {
    [[maybe_unused]] const Status sent = signal_process(d.pid, d.start_time, signal);
    pids.push_back(d.pid);
  }
  return pids;
}

void kill_marked(const std::vector<std::string>& marks) {
  constexpr int kRounds = 10;  // a process may fork while it is looked for
  for (int round = 0; round < kRounds; ++round) {
    bool found = false;
    for (const pid_t pid : all_pids()) {
      const auto process = living(pid);
      if (pid == getpid() || !process || !has_marks(pid, marks)) continue;
      found = signal_process(pid, process->start_time, SIGKILL).has_value() || found;
    }
    if (!found) return;
  }
}

}  // namespace antdt::antdtd
