#include "antdtd/shim/linger.h"

#include <poll.h>
#include <unistd.h>

#include <filesystem>

#include "antdtd/shim/process_key.h"
#include "antdtd/shim/shim_files.h"

namespace antdt::antdtd {
namespace {

constexpr int kLookEveryMs = 50;

bool shim_lives(const std::string& dir) {
  const Result<PidLock> lock = PidLock::take(dir);
  return !lock && lock.error().kind == ErrorKind::kRefused;
}

}  // namespace

bool was_succeeded(const std::string& process_dir) {
  if (access(process_dir.c_str(), F_OK) == 0) return false;
  const std::filesystem::path job = std::filesystem::path(process_dir).parent_path();
  const std::string of_job_daemons = to_string(kJobDaemon) + ".";
  std::error_code error;
  std::filesystem::directory_iterator it(job, error);
  if (error) return true;
  for (const std::filesystem::directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string();
    if (it->path().filename().string().starts_with(of_job_daemons) && shim_lives(path)) return true;
  }
  return false;
}

void linger(const std::string& process_dir, const SuccessorOptions& agent) {
  const SteadyClock clock;
  const MonoTime until = clock.now() + kLingerAtMost;
  AgentSuccessor successor(agent);
  while (clock.now() < until && !was_succeeded(process_dir)) {
    successor.tend(Duration::zero(), clock.now());
    pollfd item{successor.agent_fd(), POLLIN, 0};
    poll(&item, 1, kLookEveryMs);
  }
}

}  // namespace antdt::antdtd
