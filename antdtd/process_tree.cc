#include "antdtd/process_tree.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "core/fs.h"

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

// The parent of a living process: fields 3 and 4 of /proc/<pid>/stat.
std::optional<pid_t> parent_of(pid_t pid) {
  const Result<std::string> stat = read_file(fmt::format("/proc/{}/stat", pid));
  if (!stat) return std::nullopt;
  const std::size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= stat->size()) return std::nullopt;
  const char state = (*stat)[name_end + 2];
  if (state == 'Z' || state == 'X') return std::nullopt;
  pid_t parent = 0;
  const char* begin = stat->data() + name_end + 4;
  if (std::from_chars(begin, stat->data() + stat->size(), parent).ec != std::errc()) {
    return std::nullopt;
  }
  return parent;
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
  std::unordered_map<pid_t, std::vector<pid_t>> children;
  for (const pid_t pid : all_pids()) {
    if (const auto parent = parent_of(pid)) children[*parent].push_back(pid);
  }
  std::vector<pid_t> found;
  std::vector<pid_t> frontier = {root};
  while (!frontier.empty()) {
    const pid_t parent = frontier.back();
    frontier.pop_back();
    for (const pid_t child : children[parent]) {
      found.push_back(child);
      frontier.push_back(child);
    }
  }
  return found;
}

std::size_t signal_descendants(pid_t root, int signal) {
  const std::vector<pid_t> pids = descendants(root);
  for (const pid_t pid : pids) kill(pid, signal);
  return pids.size();
}

void kill_marked(const std::vector<std::string>& marks) {
  constexpr int kRounds = 10;  // a process may fork while it is looked for
  for (int round = 0; round < kRounds; ++round) {
    bool found = false;
    for (const pid_t pid : all_pids()) {
      if (pid == getpid() || !parent_of(pid) || !has_marks(pid, marks)) continue;
      found = kill(pid, SIGKILL) == 0 || found;
    }
    if (!found) return;
  }
}

}  // namespace antdt::antdtd
