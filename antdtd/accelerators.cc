#include "antdtd/accelerators.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/log.h"

namespace antdt::antdtd {
namespace {

constexpr Duration kApart = std::chrono::seconds(1);
constexpr Duration kNews = std::chrono::seconds(3);

// Of NVML's interface what is used of it (its reference: nvmlClocksThrottleReasons,
// nvmlDeviceGetComputeRunningProcesses). 0 is success.
using Device = void*;
struct ProcessInfo {  // the same for versions 2 and 3 of the call
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};
constexpr int kInsufficientSize = 7;
// Bounds that an operator set for all (applications' clocks) and idling are none of these.
constexpr unsigned long long kSoftwarePowerCap = 0x04;
constexpr unsigned long long kHardwareSlowdown = 0x08;
constexpr unsigned long long kSoftwareThermal = 0x20;
constexpr unsigned long long kHardwareThermal = 0x40;
constexpr unsigned long long kPowerBrake = 0x80;
constexpr unsigned long long kHeldDown =
    kSoftwarePowerCap | kHardwareSlowdown | kSoftwareThermal | kHardwareThermal | kPowerBrake;

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};

}  // namespace

class Nvml {
 public:
  // Nothing: it is not there, or too old.
  static std::unique_ptr<Nvml> open(const std::string& library) {
    auto nvml = std::make_unique<Nvml>();
    nvml->library_.reset(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (!nvml->library_ || !nvml->find_calls()) return nullptr;
    return nvml;
  }
  // False: it does not begin, or has no device.
  bool begin() {
    if (const int error = init_(); error != 0) {
      log_info("NVML does not begin (error {}): nothing is told of accelerators", error);
      return false;
    }
    began_ = true;
    unsigned count = 0;
    if (count_(&count) != 0 || count == 0) return false;
    log_info("{} accelerators are watched", count);
    return true;
  }
  ~Nvml() {
    if (began_) shutdown_();
  }

  std::set<std::uint32_t> held_down() {
    std::set<std::uint32_t> pids;
    unsigned count = 0;
    if (count_(&count) != 0) return pids;
    for (unsigned i = 0; i < count; ++i) {
      Device device = nullptr;
      unsigned long long reasons = 0;
      if (handle_(i, &device) != 0 || reasons_(device, &reasons) != 0) continue;
      if ((reasons & kHeldDown) != 0) add_processes(device, pids);
    }
    return pids;
  }

 private:
  template <class F>
  bool find(F*& call, const char* name) {
    call = reinterpret_cast<F*>(dlsym(library_.get(), name));
    return call != nullptr;
  }
  bool find_calls() {
    return find(init_, "nvmlInit_v2") && find(shutdown_, "nvmlShutdown") &&
           find(count_, "nvmlDeviceGetCount_v2") &&
           find(handle_, "nvmlDeviceGetHandleByIndex_v2") &&
           find(reasons_, "nvmlDeviceGetCurrentClocksThrottleReasons") &&
           (find(processes_, "nvmlDeviceGetComputeRunningProcesses_v3") ||
            find(processes_, "nvmlDeviceGetComputeRunningProcesses_v2"));
  }
  // More may have begun between two calls; those are seen at the next look.
  void add_processes(Device device, std::set<std::uint32_t>& pids) {
    unsigned count = 0;
    const int rc = processes_(device, &count, nullptr);
    if ((rc != 0 && rc != kInsufficientSize) || count == 0) return;
    std::vector<ProcessInfo> infos(count);
    if (processes_(device, &count, infos.data()) != 0) return;
    infos.resize(std::min<std::size_t>(count, infos.size()));
    for (const ProcessInfo& info : infos) pids.insert(info.pid);
  }

  std::unique_ptr<void, CloseLibrary> library_;
  bool began_ = false;
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*count_)(unsigned*) = nullptr;
  int (*handle_)(unsigned, Device*) = nullptr;
  int (*reasons_)(Device, unsigned long long*) = nullptr;
  int (*processes_)(Device, unsigned*, void* infos) = nullptr;  // ProcessInfo, as many
};

Accelerators::Accelerators(const std::string& library) : nvml_(Nvml::open(library)) {
  if (nvml_) thread_ = std::thread([this] { watch(); });
}

Accelerators::~Accelerators() {
  if (!nvml_) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Accelerators::watch() {
  const bool begun = nvml_->begin();
  std::unique_lock lock(mutex_);
  if (!begun) {
    tells_nothing_ = true;
    changed_.notify_all();
    return;
  }
  while (!over_) {
    lock.unlock();
    std::set<std::uint32_t> found = nvml_->held_down();
    lock.lock();
    held_down_ = std::move(found);
    looked_ = std::chrono::steady_clock::now();
    ++looks_;
    changed_.notify_all();
    changed_.wait_for(lock, kApart, [&] { return over_ || at_once_; });
    at_once_ = false;
  }
}

std::set<std::uint32_t> Accelerators::held_down() const {
  const std::lock_guard lock(mutex_);
  if (std::chrono::steady_clock::now() - looked_ > kNews) return {};
  return held_down_;
}

bool Accelerators::await_look() {
  if (!nvml_) return false;
  std::unique_lock lock(mutex_);
  const std::uint64_t before = looks_;
  // The look that is under way may have begun before.
  while (looks_ < before + 2 && !tells_nothing_) {
    at_once_ = true;
    changed_.notify_all();
    const std::uint64_t now = looks_;
    changed_.wait(lock, [&] { return looks_ > now || tells_nothing_; });
  }
  return !tells_nothing_;
}

}  // namespace antdt::antdtd
