#include "antdtd/processes/environment.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string_view>

#include "core/os/spawn.h"
#include "core/role_protocol.h"

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
                                            const std::vector<wire::EnvVar>& job_env,
                                            const PythonFiles& python) {
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
  if (speaks(env["ANTDT_PROTOCOL"], Protocol::kAntdt)) {
    env.try_emplace("OMP_WAIT_POLICY", "PASSIVE");
    env.try_emplace("OPENBLAS_THREAD_TIMEOUT", "4");
  }
  if (speaks(env["ANTDT_PROTOCOL"], Protocol::kTorchrun))
    env.try_emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");

  if (!python.library.empty()) env["ANTDT_AGENT_LIBRARY"] = python.library;

  const auto trace = env.find("ANTDT_TRACE");
  if (trace != env.end() && trace->second == "1" && !python.tracer.empty()) {
    const std::string before = env["PYTHONPATH"];
    env["PYTHONPATH"] = before.empty() ? python.tracer : python.tracer + ":" + before;
    if (!python.library.empty()) env.try_emplace("ANTDT_LIBRARY", python.library);
  }

  std::vector<std::string> list;
  list.reserve(env.size());
  for (const auto& [name, value] : env) list.push_back(name + "=" + value);
  return list;
}

PythonFiles find_python_files(const std::string& executable) {
  const std::filesystem::path bin = std::filesystem::path(executable).parent_path();
  const auto there = [&](const std::filesystem::path& path) {
    std::error_code failed;
    const std::filesystem::path real = std::filesystem::canonical(bin / path, failed);
    return failed ? std::string() : real.string();
  };
  PythonFiles found{{}, there("../lib/libantdt.so.1")};
  for (const char* place : {"../share/antdt/trace/site",      // an installed prefix
                            "../trace/site",                  // antdt/bin of a wheel
                            "../../python/antdt/trace/site",  // build/bin of the source tree
                            "../../../python/antdt/trace/site"}) {
    if (there(std::filesystem::path(place) / "sitecustomize.py").empty()) continue;
    found.tracer = there(place);
    break;
  }
  return found;
}

bool lacks_tracer(const std::vector<wire::EnvVar>& job_env, const PythonFiles& python) {
  return python.tracer.empty() && std::ranges::any_of(job_env, [](const wire::EnvVar& variable) {
           return variable.name == "ANTDT_TRACE" && variable.value == "1";
         });
}

}  // namespace antdt::antdtd
