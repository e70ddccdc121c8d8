#include "trainer/c_api/program/skipped.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "core/log/log.h"
#include "core/os/owned_fd.h"
#include "core/utf8.h"
#include "core/wire/shard_messages.h"

namespace antdt::capi {

std::string kept_reason(const char* reason) {
  return valid_utf8(reason == nullptr ? "" : reason, wire::SkippedRecords::kMaxReason);
}

Skipped::Skipped(const std::string& run_dir, const std::string& worker)
    : path_(run_dir.empty() ? "" : fmt::format("{}/skipped-{}.jsonl", run_dir, worker)) {}

Status Skipped::add(std::uint64_t record, std::uint64_t phase, std::uint64_t epoch,
                    const std::string& reason) {
  using Json = nlohmann::json;
  const Json line{{"record", record}, {"phase", phase}, {"epoch", epoch}, {"reason", reason}};
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (path_.empty()) {
    log_warn("a record is skipped: {}", text.substr(0, text.size() - 1));
    return {};
  }
  const std::lock_guard lock(mutex_);
  const OwnedFd file(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (file.get() < 0) return fail_errno(ErrorKind::kIo, errno, "cannot open " + path_);
  const ssize_t written = ::write(file.get(), text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) return {};
  return fail_errno(ErrorKind::kIo, written < 0 ? errno : ENOSPC, "cannot write " + path_);
}

}  // namespace antdt::capi
