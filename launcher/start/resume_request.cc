#include "launcher/start/resume_request.h"

#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "core/os/fs.h"

namespace antdt::launcher {
namespace {

std::string path_in(const std::string& run_dir) { return run_dir + "/resume.request"; }

}  // namespace

Status write_resume_request(const std::string& run_dir, const ResumeRequest& request) {
  const nlohmann::ordered_json json = {{"who", request.who},
                                       {"from_checkpoint", request.from_checkpoint},
                                       {"changes", request.changes}};
  return write_file_atomic(path_in(run_dir), json.dump() + "\n", 0600);
}

Result<std::optional<ResumeRequest>> read_resume_request(const std::string& run_dir) {
  const std::string path = path_in(run_dir);
  if (::access(path.c_str(), F_OK) != 0) return std::nullopt;
  ANTDT_TRY(const std::string text, read_file(path));
  try {
    const auto json = nlohmann::json::parse(text);
    return ResumeRequest{json.at("who"), json.at("from_checkpoint"), json.value("changes", "")};
  } catch (const nlohmann::json::exception& e) {
    return fail(ErrorKind::kCorrupt, "{} cannot be read: {}", path, e.what());
  }
}

Status remove_resume_request(const std::string& run_dir) {
  const std::string path = path_in(run_dir);
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return fail_errno(ErrorKind::kIo, errno, "remove " + path);
}

}  // namespace antdt::launcher
