#include "launcher/start/run_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/report/given_up.h"
#include "launcher/start/paths.h"

namespace antdt::launcher {

namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kSetupLock = "launch.lock";

std::string directory_for(const RunOptions& options, const std::string& job_id) {
  return absolute_path(options.run_dir.empty() ? "runs/" + job_id : options.run_dir, ".");
}

// `path` itself, or its nearest parent that exists.
std::string existing_above(std::string path) {
  while (path.size() > 1 && ::access(path.c_str(), F_OK) != 0) {
    path = std::filesystem::path(path).parent_path().string();
  }
  return path;
}

std::string own_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string own_boot() {
  const std::string id = read_file("/proc/sys/kernel/random/boot_id").value_or("");
  return id.substr(0, id.find('\n'));
}

Status check_unused(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  if (!std::filesystem::is_directory(path, error)) {
    return fail(ErrorKind::kUsage, "the run directory {} is not a directory", path);
  }
  if (const auto pid = FileLock::owner(path + "/" + kSetupLock)) {
    return fail(ErrorKind::kUsage,
                "the run directory {} is already in use: process {} is starting a job in it; "
                "choose another --run-dir",
                path, *pid);
  }
  if (std::filesystem::exists(path + "/job.json", error)) {
    return fail(ErrorKind::kUsage,
                "the run directory {} is already in use: it holds a run (see antdt status {}); "
                "choose another --run-dir",
                path, path);
  }
  const std::filesystem::directory_iterator entries(path, error);
  if (error || entries != std::filesystem::directory_iterator()) {
    return fail(ErrorKind::kUsage, "the run directory {} is not empty: choose another --run-dir",
                path);
  }
  return {};
}

Status check_filesystem(const RunOptions& options, const std::string& path) {
  const bool elsewhere = !options.state_dir.empty();
  const std::string place = elsewhere ? absolute_path(options.state_dir, ".") : path;
  ANTDT_TRY(const std::optional<std::string> kind, options.filesystem(existing_above(place)));
  if (!kind) return {};
  return fail(ErrorKind::kUsage,
              "{} is on a network filesystem ({}), where the journal state.db cannot be kept "
              "safely: {}",
              place, *kind,
              elsewhere ? "choose a --state-dir on a local disk"
                        : "keep it on a local disk with --state-dir DIR, or choose another "
                          "--run-dir");
}

Status write_job_files(const std::string& path, const JobConfig& config,
                       const std::string& job_toml) {
  ANTDT_RETURN_IF_ERROR(write_file_atomic(path + "/job.toml", job_toml, 0600));
  ANTDT_RETURN_IF_ERROR(write_file_atomic(path + "/effective.toml", to_toml(config), 0600));
  ANTDT_RETURN_IF_ERROR(make_directories(path + "/logs", 0700));
  ANTDT_RETURN_IF_ERROR(make_directories(path + "/checkpoints", 0700));
  return write_file_atomic(path + "/job.json", to_json(config), 0600);
}

}  // namespace

Status check_run_directory(const RunOptions& options) {
  const std::string path = directory_for(options, "job");
  if (!options.run_dir.empty()) ANTDT_RETURN_IF_ERROR(check_unused(path));
  return check_filesystem(options, path);
}

Result<RunDirectory> create_run_directory(const JobConfig& config, const std::string& job_toml,
                                          const RunOptions& options) {
  const std::string path = directory_for(options, config.job.id);
  ANTDT_RETURN_IF_ERROR(check_unused(path));
  ANTDT_RETURN_IF_ERROR(check_filesystem(options, path));
  ANTDT_RETURN_IF_ERROR(make_directories(std::filesystem::path(path).parent_path().string()));
  ANTDT_RETURN_IF_ERROR(make_directories(path, 0700));
  if (::chmod(path.c_str(), 0700) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "cannot make " + path + " private");
  }
  ANTDT_TRY(FileLock lock, hold_run_directory(path));
  std::string state_dir = path;
  if (!options.state_dir.empty()) {
    state_dir = absolute_path(options.state_dir, ".") + "/" + config.job.id;
    ANTDT_RETURN_IF_ERROR(make_directories(state_dir, 0700));
  }
  ANTDT_RETURN_IF_ERROR(write_job_files(path, config, job_toml));
  return RunDirectory{path, state_dir, std::move(lock)};
}

Result<FileLock> hold_run_directory(const std::string& path) {
  auto lock = FileLock::acquire(path + "/" + kSetupLock);
  if (lock) return lock;
  const Error& error = lock.error();
  if (error.kind == ErrorKind::kRefused) {
    return fail(ErrorKind::kUsage, "somebody else is starting the run in {}: {}", path,
                error.message);
  }
  return fail(error.kind,
              "no run can be started in {}, where nothing can be written: {}. Make room on its "
              "filesystem, or make it writable, and try again",
              path, error.message);
}

Status write_control(const std::string& run_dir, const RunControl& control) {
  const Json json = {{"job", control.job},
                     {"jobd_socket", control.jobd_socket},
                     {"agent_socket", control.agent_socket},
                     {"state_dir", control.state_dir},
                     {"agent_pid", control.agent_pid},
                     {"agent_start_time", control.agent_start_time},
                     {"host", own_name()},
                     {"boot", own_boot()}};
  return write_file_atomic(run_dir + "/control.json", json.dump(2) + "\n", 0600);
}

Result<RunControl> read_control(const std::string& run_dir) {
  const auto text = read_file(run_dir + "/control.json");
  if (!text) {
    return fail(ErrorKind::kUsage, "{} is not the directory of a run that was started: {}", run_dir,
                text.error().message);
  }
  const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  try {
    return RunControl{json.at("job"),         json.at("jobd_socket"), json.at("agent_socket"),
                      json.at("state_dir"),   json.at("agent_pid"),   json.at("agent_start_time"),
                      json.value("host", ""), json.value("boot", "")};
  } catch (const nlohmann::json::exception& e) {
    return fail(ErrorKind::kCorrupt, "{}/control.json cannot be read: {}", run_dir, e.what());
  }
}

std::string started_elsewhere(const std::string& run_dir) {
  const auto control = read_control(run_dir);
  if (!control || control->host == own_name() || control->boot == own_boot()) return "";
  return control->host;
}

std::string given_up(const std::string& run_dir) {
  std::string why = read_file(given_up_file(run_dir)).value_or("");
  while (why.ends_with('\n') || why.ends_with('.')) why.pop_back();
  return why;
}

Error broken_off(const std::string& run_dir) {
  const std::string why = given_up(run_dir);
  if (why.empty()) {
    return {ErrorKind::kUnreachable,
            fmt::format("the run in {0} was broken off: its processes are gone and left no summary "
                        "({0}/agent.log may say why); go on with antdt run --resume {0}",
                        run_dir)};
  }
  return {ErrorKind::kUnreachable,
          fmt::format("the run in {0} was broken off: its agent gave it up, because {1}. Once that "
                      "is mended, go on with antdt run --resume {0}",
                      run_dir, why)};
}

}  // namespace antdt::launcher
