// A library with the calls of NVML that the agent makes, for hosts without a device. It has two
// devices; for each the file named by FAKE_NVML has a line "REASONS PID...".
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct ProcessInfo {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};
struct State {
  unsigned long long reasons = 0;
  std::vector<unsigned> pids;
};

std::vector<State> states() {
  const char* path = std::getenv("FAKE_NVML");
  std::ifstream file(path == nullptr ? "" : path);
  std::vector<State> all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    State& state = all.emplace_back();
    words >> state.reasons;
    for (unsigned pid = 0; words >> pid;) state.pids.push_back(pid);
  }
  return all;
}

State state_of(void* device) {
  const auto all = states();
  const auto index = reinterpret_cast<std::size_t>(device) - 1;
  return index < all.size() ? all[index] : State{};
}

}  // namespace

extern "C" {
int nvmlInit_v2() { return std::getenv("FAKE_NVML") == nullptr ? 9 : 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<std::size_t>(index) + 1);
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = state_of(device).reasons;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, void* infos) {
  const auto pids = state_of(device).pids;
  const unsigned room = *count;
  *count = static_cast<unsigned>(pids.size());
  if (room < pids.size()) return 7;
  for (std::size_t i = 0; i < pids.size(); ++i)
    static_cast<ProcessInfo*>(infos)[i] = {pids[i], 0, 0, 0};
  return 0;
}
}
