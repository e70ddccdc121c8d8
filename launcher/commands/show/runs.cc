#include "launcher/commands/show/runs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include "antdtd/host/host.h"
#include "antdtd/processes/process_store.h"
#include "core/os/fs.h"
#include "core/os/runtime_dir.h"
#include "core/os/user.h"
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
    std::error_code of_this_one;  // which does not hide the others
    if (it->is_directory(of_this_one)) found.push_back(it->path().string());
  }
  return found;
}

// The directory that keeps this user out is the lowest one of `path` that can be looked at.
tl::unexpected<Error> not_allowed(const std::string& path, const std::string& why) {
  fs::path at = path;
  struct stat about {};
  while (::stat(at.c_str(), &about) != 0 && at.has_relative_path()) at = at.parent_path();
  if (about.st_uid == ::geteuid()) {
    return fail(
        ErrorKind::kIo,
        "whether {} holds a run cannot be seen: {}. {} belongs to you: chmod u+rx {} lets you in",
        path, why, at.string(), at.string());
  }
  const std::string owner = user_name(about.st_uid);
  return fail(
      ErrorKind::kIo,
      "whether {} holds a run cannot be seen: {}. {} belongs to {}: run the command as {}, "
      "or ask an agent on one of the job's hosts, with the job's id: antdt status JOB --agent "
      "HOST:PORT",
      path, why, at.string(), owner, owner);
}

// kIo if that cannot be seen.
Result<bool> holds_run(const std::string& path) {
  if (::access((path + "/job.json").c_str(), F_OK) == 0) return true;
  const int error = errno;
  if (error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG) return false;
  const std::string why = std::generic_category().message(error);
  if (error == EACCES || error == EPERM) return not_allowed(path, why);
  return fail(
      ErrorKind::kIo,
      "whether {} holds a run cannot be seen: {}. Look at the filesystem that it lies on, "
      "or ask an agent on one of the job's hosts, with the job's id: antdt status JOB --agent "
      "HOST:PORT",
      path, why);
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

struct Looked {
  KnownRun run;
  bool is_run = false;
};

Looked look_at_files(const std::string& path) {
  Looked looked{{path, job_id(path)}, holds_run(path).value_or(false)};
  if (const auto state = seen_state(path)) {
    looked.run.state = *state;
  } else {
    looked.run.trouble = state.error().message;
  }
  return looked;
}

// Nothing if an earlier look has not returned.
std::optional<Looked> look_at_run(const std::string& path, PendingLooks& pending) {
  if (!pending.begin(path)) return std::nullopt;
  Looked looked = look_at_files(path);
  pending.done(path);
  return looked;
}

std::string normal_path(const std::string& path) {
  return fs::path(path + "/").parent_path().lexically_normal().string();
}

// Below runs/, without waiting for it. Nothing if it does not answer.
std::optional<std::vector<std::string>> directories_below(
    const std::string& root, const std::shared_ptr<PendingLooks>& pending) {
  return within(kDiskPatience, root, pending, [root] { return directories_in(root); });
}

// What is known of a run whose files have not been looked at.
struct Unseen {
  std::string job;         // "": its directory's name
  std::string socket_dir;  // of its private agent; "": none is known
};

KnownRun without_files(const std::string& path, const Unseen& unseen, const std::string& trouble) {
  KnownRun run{path, unseen.job, RunState::kBrokenOff, trouble};
  if (run.job.empty()) run.job = fs::path(path).filename().string();
  if (unseen.socket_dir.empty()) return run;
  const bool agent = FileLock::owner(launcher::private_agent_lock(unseen.socket_dir)).has_value();
  if (agent) run.state = RunState::kRunning;
  return run;
}

}  // namespace

std::string does_not_answer(const std::string& path) {
  return fmt::format(
      "the filesystem of {} has not answered for {:.0f} s: look at the disk (or the network) that "
      "it lies on",
      path, to_seconds(kDiskPatience));
}

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

Result<RunState> seen_state(const std::string& run_dir) {
  const RunState state = state_of(run_dir);
  if (state != RunState::kBrokenOff) return state;
  // Looked at behind it, so that an error that begins meanwhile is not missed; and once more, so
  // that one that ends meanwhile is not taken for the end of the run.
  ANTDT_TRY([[maybe_unused]] const bool is_run, holds_run(run_dir));
  return state_of(run_dir);
}

Result<RunState> state_in_time(const std::string& run_dir) {
  const auto seen = within(kDiskPatience, [run_dir] { return seen_state(run_dir); });
  if (!seen) return fail(ErrorKind::kUnreachable, "{}", does_not_answer(run_dir));
  return *seen;
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

std::vector<KnownRun> known_runs(const std::shared_ptr<PendingLooks>& pending) {
  std::map<std::string, Unseen> all;  // by run directory
  for (const KnownAgent& agent : known_agents()) all[agent.run_dir] = {agent.job, agent.socket_dir};
  std::vector<KnownRun> runs;
  const std::string root = launcher::absolute_path("runs", ".");
  if (const auto below = directories_below(root, pending)) {
    for (const std::string& path : *below) all.try_emplace(path);
  } else {
    runs.push_back(without_files(root, {}, does_not_answer(root)));
  }
  std::vector<std::string> paths;
  for (const auto& [path, unseen] : all) paths.push_back(path);
  const auto found = each_within(kDiskPatience, paths, [pending](const std::string& path) {
    return look_at_run(path, *pending);
  });
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const Unseen& unseen = all[paths[i]];
    if (!found[i] || !*found[i]) {
      runs.push_back(without_files(paths[i], unseen, does_not_answer(paths[i])));
      continue;
    }
    const Looked& looked = **found[i];
    const bool is_known = !unseen.job.empty();
    if (is_known && !looked.run.trouble.empty()) {
      runs.push_back(without_files(paths[i], unseen, looked.run.trouble));
    } else if (looked.is_run || is_known) {
      runs.push_back(looked.run);
    }
  }
  std::ranges::sort(runs, std::ranges::greater{}, ulid_of);
  return runs;
}

const KnownRun* newest_running(const std::vector<KnownRun>& runs) {
  const auto found = std::ranges::find(runs, RunState::kRunning, &KnownRun::state);
  return found == runs.end() ? nullptr : &*found;
}

namespace {

Result<std::string> locate_newest() {
  const std::vector<KnownRun> runs = known_runs();
  if (const KnownRun* const newest = newest_running(runs)) return newest->run_dir;
  if (runs.empty()) return fail(ErrorKind::kUsage, "{}", list(runs));
  return fail(ErrorKind::kUsage, "none of your jobs is running; {}", list(runs));
}

}  // namespace

Result<std::string> locate_run(const std::string& name) {
  if (name.empty()) return locate_newest();
  const std::vector<std::string> paths = {
      normal_path(launcher::absolute_path(name, ".")),
      normal_path(launcher::absolute_path("runs/" + name, "."))};
  const auto held = each_within(kDiskPatience, paths, holds_run);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (held[i] && held[i]->value_or(false)) return paths[i];
  }
  for (const KnownAgent& agent : known_agents()) {
    const auto at = std::ranges::find(paths, normal_path(agent.run_dir));
    if (agent.job == name) return agent.run_dir;
    if (at == paths.end()) continue;
    const auto& seen = held[static_cast<std::size_t>(at - paths.begin())];
    if (!seen || !*seen) return agent.run_dir;  // its daemon can be asked all the same
  }
  const std::vector<KnownRun> runs = known_runs();
  std::vector<KnownRun> meant;
  for (const KnownRun& run : runs) {
    if (run.job == name) return run.run_dir;
    if (run.job.starts_with(name)) meant.push_back(run);
  }
  if (meant.size() == 1) return meant.front().run_dir;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!held[i]) return fail(ErrorKind::kUnreachable, "{}", does_not_answer(paths[i]));
    if (!*held[i]) return tl::unexpected<Error>(held[i]->error());
  }
  if (meant.empty()) {
    return fail(ErrorKind::kUsage, "'{}' is neither a run directory nor a job's id; {}", name,
                list(runs));
  }
  return fail(ErrorKind::kUsage, "'{}' is the beginning of several ids; {}", name, list(meant));
}

Result<std::string> find_job(const std::string& name) {
  ANTDT_TRY(std::string run_dir, locate_run(name));
  const auto seen = state_in_time(run_dir);
  if (seen) return run_dir;
  return fail(seen.error().kind, "{}. If the job runs, antdt status {} asks its daemon",
              seen.error().message, run_dir);
}

std::string operator_name() { return user_name(::geteuid()) + "@" + antdtd::host_name(); }

}  // namespace antdt::cli
