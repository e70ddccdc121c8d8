// A library with the calls of NVML that the agent makes, for hosts without a device. The file named
// by FAKE_NVML says what it finds; it is read in each call, so a test changes devices by replacing
// the file. A line is a GPU, in the order of indexes:
//
//   gpu uuid=GPU-a name=H100 memory=80000000000 numa=0 cpus=0-1 mig=MIG-1,MIG-2 busy=40
//
// Words that may be left out: reasons=N (of clocks that are held down) pids=1,2 ecc=N (uncorrected
// errors) pages=1 (wait to be retired) rows=1 (wait to be remapped) rowfailed=1 lost=1 (it fell off
// the bus) forbidden=1 (it belongs to somebody else). A line "hang" holds up every call until the
// file is replaced; with a line "init 18" the library does not begin, for that error.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "antdtd/devices/nvml_types.h"

namespace {

using antdt::antdtd::nvml::Handle;
namespace nvml = antdt::antdtd::nvml;

constexpr std::size_t kInstance = 1000;  // handles of MIG instances are GPU * 1000 + instance + 1

struct Gpu {
  std::map<std::string, std::string> words;
  [[nodiscard]] std::string text(const std::string& name) const {
    const auto found = words.find(name);
    return found == words.end() ? "" : found->second;
  }
  [[nodiscard]] unsigned long long number(const std::string& name) const {
    const std::string value = text(name);
    return value.empty() ? 0 : std::stoull(value);
  }
  [[nodiscard]] std::vector<std::string> list(const std::string& name) const {
    std::vector<std::string> items;
    std::istringstream text_of(text(name));
    for (std::string item; std::getline(text_of, item, ',');) items.push_back(item);
    return items;
  }
};

struct Host {
  int error = nvml::kSuccess;  // with which the library does not begin
  std::vector<Gpu> gpus;
};

Host host() {
  const char* path = std::getenv("FAKE_NVML");
  if (path == nullptr) return {nvml::kDriverNotLoaded, {}};
  for (;;) {
    std::ifstream file(path);
    Host told;
    bool hangs = false;
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string word;
      words >> word;
      if (word == "hang") hangs = true;
      if (word == "init") words >> told.error;
      if (word != "gpu") continue;
      Gpu& gpu = told.gpus.emplace_back();
      while (words >> word) {
        const std::size_t equals = word.find('=');
        gpu.words[word.substr(0, equals)] = word.substr(equals + 1);
      }
    }
    if (!hangs) return told;
    usleep(5000);
  }
}

std::vector<Gpu> gpus() { return host().gpus; }

// The GPU of a handle, of its own or of an instance; none if the file does not have it any more.
Gpu gpu_of(Handle handle) {
  auto number = reinterpret_cast<std::size_t>(handle);
  if (number >= kInstance) number /= kInstance;
  const std::vector<Gpu> all = gpus();
  return number - 1 < all.size() ? all[number - 1] : Gpu{};
}

int answer(const Gpu& gpu) { return gpu.number("lost") != 0 ? nvml::kGpuIsLost : nvml::kSuccess; }

int give(const std::string& text, char* out, unsigned length) {
  if (text.size() + 1 > length) return nvml::kInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return nvml::kSuccess;
}

// "0-3" or "5"
void set_bits(const std::string& range, unsigned words, unsigned long* set) {
  std::fill(set, set + words, 0UL);
  const std::size_t dash = range.find('-');
  const unsigned long first = std::stoul(range);
  const unsigned long last = dash == std::string::npos ? first : std::stoul(range.substr(dash + 1));
  for (unsigned long bit = first; bit <= last && bit / 64 < words; ++bit) {
    set[bit / 64] |= 1UL << (bit % 64);
  }
}

}  // namespace

extern "C" {
int nvmlInit_v2() { return host().error; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int) { return "an error of the tests' NVML"; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(gpus().size());
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle* handle) {
  const std::vector<Gpu> all = gpus();
  if (index >= all.size()) return nvml::kNotFound;
  if (all[index].number("forbidden") != 0) return nvml::kNoPermission;
  *handle = reinterpret_cast<Handle>(static_cast<std::size_t>(index) + 1);
  return answer(all[index]);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Handle handle, unsigned long long* reasons) {
  const Gpu gpu = gpu_of(handle);
  *reasons = gpu.number("reasons");
  return answer(gpu);
}
int nvmlDeviceGetComputeRunningProcesses_v3(Handle handle, unsigned* count, void* infos) {
  const std::vector<std::string> pids = gpu_of(handle).list("pids");
  const unsigned room = *count;
  *count = static_cast<unsigned>(pids.size());
  if (room < pids.size()) return nvml::kInsufficientSize;
  for (std::size_t i = 0; i < pids.size(); ++i) {
    static_cast<nvml::ProcessInfo*>(infos)[i] = {static_cast<unsigned>(std::stoul(pids[i])), 0, 0,
                                                 0};
  }
  return 0;
}
int nvmlDeviceGetUUID(Handle handle, char* out, unsigned length) {
  const Gpu gpu = gpu_of(handle);
  const auto number = reinterpret_cast<std::size_t>(handle);
  return give(number < kInstance ? gpu.text("uuid") : gpu.list("mig").at(number % kInstance - 1),
              out, length);
}
int nvmlDeviceGetName(Handle handle, char* out, unsigned length) {
  return give(gpu_of(handle).text("name"), out, length);
}
int nvmlDeviceGetMemoryInfo(Handle handle, nvml::Memory* memory) {
  const Gpu gpu = gpu_of(handle);
  memory->total = gpu.number("memory");
  if (reinterpret_cast<std::size_t>(handle) >= kInstance) memory->total /= gpu.list("mig").size();
  return 0;
}
int nvmlDeviceGetPciInfo_v3(Handle handle, nvml::PciInfo* info) {
  *info = {};
  const std::string id =
      "00000000:0" + std::to_string(reinterpret_cast<std::size_t>(handle)) + ":00.0";
  return give(id, info->bus_id, sizeof(info->bus_id));
}
int nvmlDeviceGetCpuAffinity(Handle handle, unsigned words, unsigned long* set) {
  const std::string cpus = gpu_of(handle).text("cpus");
  if (cpus.empty()) return nvml::kNotSupported;
  set_bits(cpus, words, set);
  return 0;
}
int nvmlDeviceGetMemoryAffinity(Handle handle, unsigned words, unsigned long* set, unsigned) {
  const std::string node = gpu_of(handle).text("numa");
  if (node.empty()) return nvml::kNotSupported;
  set_bits(node, words, set);
  return 0;
}
int nvmlDeviceGetMigMode(Handle handle, unsigned* now, unsigned* later) {
  const Gpu gpu = gpu_of(handle);
  if (!gpu.words.contains("mig")) return nvml::kNotSupported;
  *now = *later = 1;
  return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(Handle, unsigned* count) {
  *count = 7;
  return 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(Handle handle, unsigned index, Handle* instance) {
  if (index >= gpu_of(handle).list("mig").size()) return nvml::kNotFound;
  const auto number = reinterpret_cast<std::size_t>(handle) * kInstance + index + 1;
  *instance = reinterpret_cast<Handle>(number);
  return 0;
}
int nvmlDeviceGetTotalEccErrors(Handle handle, int type, int, unsigned long long* errors) {
  const Gpu gpu = gpu_of(handle);
  *errors = type == nvml::kUncorrected ? gpu.number("ecc") : 0;
  return answer(gpu);
}
int nvmlDeviceGetRetiredPagesPendingStatus(Handle handle, int* pending) {
  *pending = static_cast<int>(gpu_of(handle).number("pages"));
  return 0;
}
int nvmlDeviceGetRemappedRows(Handle handle, unsigned* corrected, unsigned* uncorrected,
                              unsigned* pending, unsigned* failed) {
  const Gpu gpu = gpu_of(handle);
  *corrected = *uncorrected = 0;
  *pending = static_cast<unsigned>(gpu.number("rows"));
  *failed = static_cast<unsigned>(gpu.number("rowfailed"));
  return 0;
}
int nvmlDeviceGetUtilizationRates(Handle handle, nvml::Utilization* busy) {
  *busy = {static_cast<unsigned>(gpu_of(handle).number("busy")), 0};
  return 0;
}
int nvmlDeviceGetClockInfo(Handle, int, unsigned* mhz) {
  *mhz = 1200;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(Handle, int, unsigned* mhz) {
  *mhz = 1980;
  return 0;
}
}
