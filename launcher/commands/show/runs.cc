#include "launcher/commands/show/runs.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "antdtd/host/host.h"
#include "antdtd/processes/process_store.h"
#include "core/os/fs.h"
#include "core/os/runtime_dir.h"
#include "core/wire/codec.h"
#include "launcher/start/leftovers.h"
#include "launcher/start/paths.h"
#include "launcher/start/run_directory.h"

namespace antdt::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kNamed = 5;  // how many runs a message names at most

std::vector<std::string> directories_in(const std::string& path) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    if (it->is_directory(error)) found.push_back(it->path().string());
  }
  return found;
}

bool holds_run(const std::string& path) {
  return ::access((path + "/job.json").c_str(), F_OK) == 0;
}

// The time in the id's ULID, by which runs of different names are ordered.
std::string_view ulid_of(const KnownRun& run) {
  const std::string_view id = run.job;
  return id.substr(id.rfind('-') + 1);
}

std::string list(const std::vector<KnownRun>& runs) {
  if (runs.empty()) return "none of your jobs is running, and there are no runs below ./runs";
  std::string text = "there is";
  for (std::size_t i = 0; i < runs.size() && i < kNamed; ++i) {
    text += fmt::format("{} {} in {}", i == 0 ? "" : ",", runs[i].job, runs[i].run_dir);
  }
  if (runs.size() > kNamed) text += fmt::format(" and {} more", runs.size() - kNamed);
  return text + " (antdt jobs lists them)";
}

Result<std::string> newest_running() {
  const std::vector<KnownRun> runs = known_runs();
  const auto found = std::ranges::find(runs, RunState::kRunning, &KnownRun::state);
  if (found != runs.end()) return found->run_dir;
  if (runs.empty()) return fail(ErrorKind::kUsage, "{}", list(runs));
  return fail(ErrorKind::kUsage, "none of your jobs is running; {}", list(runs));
}

}  // namespace

std::string job_id(const std::string& run_dir) {
  const auto control = launcher::read_control(run_dir);
  return control ? control->job : fs::path(run_dir).filename().string();
}

RunState state_of(const std::string& run_dir) {
  if (FileLock::owner(run_dir + "/jobd.lock")) return RunState::kRunning;
  if (::access((run_dir + "/summary.json").c_str(), F_OK) == 0) return RunState::kEnded;
  const auto control = launcher::read_control(run_dir);
  if (!control) return RunState::kBrokenOff;
  const std::string sockets = fs::path(control->agent_socket).parent_path();
  const bool agent = FileLock::owner(launcher::private_agent_lock(sockets)).has_value();
  return agent ? RunState::kRunning : RunState::kBrokenOff;
}

// Subdirectories of the runtime directory show which job daemon each agent keeps (docs/agent.md).
std::vector<KnownAgent> known_agents() {
  std::vector<KnownAgent> found;
  const auto root = runtime_directory();
  if (!root) return found;
  for (const std::string& sockets : directories_in(*root)) {
    for (const std::string& job : directories_in(sockets + "/state/jobs")) {
      const auto bytes = read_file(job + "/job");
      if (!bytes) continue;
      const auto record = wire::decode<antdtd::JobRecord>(*bytes);
      if (!record || record->run_dir.empty()) continue;
      found.push_back({fs::path(job).filename().string(), record->run_dir, sockets});
    }
  }
  return found;
}

std::vector<KnownRun> known_runs() {
  std::vector<std::string> paths;
  for (KnownAgent& agent : known_agents()) paths.push_back(std::move(agent.run_dir));
  for (const std::string& path : directories_in(launcher::absolute_path("runs", "."))) {
    if (holds_run(path)) paths.push_back(path);
  }
  std::ranges::sort(paths);
  paths.erase(std::ranges::unique(paths).begin(), paths.end());
  std::vector<KnownRun> runs;
  for (const std::string& path : paths) runs.push_back({path, job_id(path), state_of(path)});
  std::ranges::sort(runs, std::ranges::greater{}, ulid_of);
  return runs;
}

Result<std::string> find_job(const std::string& name) {
  if (name.empty()) return newest_running();
  for (const std::string& candidate : {name, "runs/" + name}) {
    const std::string path = launcher::absolute_path(candidate, ".");
    if (holds_run(path)) return fs::path(path + "/").parent_path().lexically_normal().string();
  }
  const std::vector<KnownRun> runs = known_runs();
  std::vector<KnownRun> meant;
  for (const KnownRun& run : runs) {
    if (run.job == name) return run.run_dir;
    if (run.job.starts_with(name)) meant.push_back(run);
  }
  if (meant.size() == 1) return meant.front().run_dir;
  if (meant.empty()) {
    return fail(ErrorKind::kUsage, "'{}' is neither a run directory nor a job's id; {}", name,
                list(runs));
  }
  return fail(ErrorKind::kUsage, "'{}' is the beginning of several ids; {}", name, list(meant));
}

std::string operator_name() {
  const uid_t uid = ::geteuid();
  const passwd* entry = ::getpwuid(uid);
  const std::string user = entry != nullptr ? entry->pw_name : fmt::format("uid {}", uid);
  return user + "@" + antdtd::host_name();
}

}  // namespace antdt::cli
