#include "antdtd/processes/environment.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "core/os/spawn.h"

namespace antdt::antdtd {
namespace {

constexpr std::array<std::string_view, 2> kStaleNames = {"RANK", "WORLD_SIZE"};
constexpr std::array<std::string_view, 11> kStalePrefixes = {
    "LOCAL_", "GROUP_", "ROLE_", "MASTER_", "TORCHELASTIC_", "PET_",
    "SLURM_", "OMPI_",  "PMI_",  "PMIX_",   "ANTDT_"};

bool is_stale(std::string_view name) {
  if (std::find(kStaleNames.begin(), kStaleNames.end(), name) != kStaleNames.end()) return true;
  return std::any_of(kStalePrefixes.begin(), kStalePrefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

constexpr std::array<std::string_view, 5> kSharedNames = {"PATH", "LD_LIBRARY_PATH", "LANG",
                                                          "LANGUAGE", "TZ"};
constexpr std::array<std::string_view, 5> kSharedPrefixes = {"LC_", "CUDA_", "NVIDIA_", "NCCL_",
                                                             "OMP_"};

bool is_shared(std::string_view name) {
  return std::find(kSharedNames.begin(), kSharedNames.end(), name) != kSharedNames.end() ||
         std::any_of(kSharedPrefixes.begin(), kSharedPrefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::vector<std::string> environment_of(const UserIdentity& user,
                                        const std::vector<std::string>& agent_env) {
  std::vector<std::string> env = user_environment(user);
  for (const std::string& entry : agent_env) {
    if (is_shared(entry.substr(0, entry.find('=')))) env.push_back(entry);
  }
  return env;
}

std::vector<std::string> worker_environment(const std::vector<std::string>& agent_env,
                                            const std::string& workers_socket,
                                            const ProcessKey& key,
                                            const std::vector<wire::EnvVar>& job_env) {
  std::map<std::string, std::string> env;
  for (const std::string& entry : agent_env) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    const std::string name = entry.substr(0, equals);
    if (!is_stale(name)) env[name] = entry.substr(equals + 1);
  }
  for (const wire::EnvVar& variable : job_env) env[variable.name] = variable.value;
  env["ANTDT_SOCKET"] = workers_socket;
  env["ANTDT_JOB_ID"] = key.job;
  env["ANTDT_WORKER_ID"] = to_string(key.member.worker);
  env["ANTDT_ATTEMPT"] = std::to_string(key.member.attempt.value);
  env.try_emplace("ANTDT_PROTOCOL", "antdt");
  env.try_emplace("OMP_NUM_THREADS", "1");
  if (env["ANTDT_PROTOCOL"] == "torchrun") env.try_emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");

  std::vector<std::string> list;
  list.reserve(env.size());
  for (const auto& [name, value] : env) list.push_back(name + "=" + value);
  return list;
}

}  // namespace antdt::antdtd
