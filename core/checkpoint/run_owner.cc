#include "core/checkpoint/run_owner.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/os/fs.h"

namespace antdt {
namespace {

std::string link_in(const std::string& run_dir) { return run_dir + "/checkpoints/.job"; }

Result<bool> is_there(const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return fail_errno(ErrorKind::kIo, errno, "looking at " + path);
}

// "" if nobody has taken it.
Result<std::string> owner_of(const std::string& run_dir) {
  const std::string job_json = run_dir + "/job.json";
  ANTDT_TRY(const bool launching, is_there(job_json));
  if (launching) {
    ANTDT_TRY(const std::string text, read_file(job_json));
    const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    const std::string id =
        json.is_object() ? json.value(nlohmann::json::json_pointer("/job/id"), "") : "";
    return id.empty() ? "its job.json names none" : id;
  }
  std::error_code error;
  const std::string id = std::filesystem::read_symlink(link_in(run_dir), error).string();
  const bool missing =
      error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  if (!error || missing) return id;
  return fail_errno(ErrorKind::kIo, error.value(), "reading " + link_in(run_dir));
}

}  // namespace

Status check_run_owner(const std::string& run_dir, const std::string& job,
                       const std::string& where) {
  ANTDT_TRY(const std::string owner, owner_of(run_dir));
  if (owner.empty() || owner == job) return {};
  return fail(
      ErrorKind::kUsage,
      "{} on {} is the run directory of another job ({}), whose checkpoints would be removed: "
      "choose a path that no run has on any host (antdt run --run-dir), or remove that one",
      run_dir, where, owner);
}

Status claim_run_directory(const std::string& run_dir, const std::string& job,
                           const std::string& where) {
  ANTDT_RETURN_IF_ERROR(check_run_owner(run_dir, job, where));
  ANTDT_RETURN_IF_ERROR(make_directories(run_dir + "/checkpoints", 0700));
  ANTDT_TRY(const bool launching, is_there(run_dir + "/job.json"));
  if (launching) return {};
  const std::string link = link_in(run_dir);
  if (::symlink(job.c_str(), link.c_str()) == 0) return {};
  // Another one was faster: a server of the job, or another job.
  if (errno == EEXIST) return check_run_owner(run_dir, job, where);
  return fail_errno(ErrorKind::kIo, errno, "making " + link);
}

}  // namespace antdt
