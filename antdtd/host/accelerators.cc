#include "antdtd/host/accelerators.h"

#include <dlfcn.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "core/log/log.h"

namespace antdt::antdtd {
namespace {

constexpr Duration kApart = std::chrono::seconds(1);
constexpr Duration kNews = std::chrono::seconds(3);
constexpr Duration kGoodbye = std::chrono::seconds(1);

// The part of NVML's interface that is used (its reference: nvmlClocksThrottleReasons,
// nvmlDeviceGetComputeRunningProcesses). 0 is success.
using Device = void*;
struct ProcessInfo {  // the same in versions 2 and 3 of the call
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};
constexpr int kInsufficientSize = 7;
// Limits that an operator set for all (applications' clocks) and idling do not count.
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

class Nvml {
 public:
  // Null if the library is missing or too old.
  static std::unique_ptr<Nvml> open(const std::string& library) {
    auto nvml = std::make_unique<Nvml>();
    nvml->library_.reset(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (!nvml->library_ || !nvml->find_calls()) return nullptr;
    return nvml;
  }
  // False if the library cannot be initialised, or finds no device.
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
  // More processes may have started between two calls; the next look finds them.
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
  int (*processes_)(Device, unsigned*, void* infos) = nullptr;  // fills an array of ProcessInfo
};

}  // namespace

// Data that the thread uses, which may outlive the rest.
struct Accelerators::Shared {
  std::unique_ptr<Nvml> nvml;
  std::mutex mutex;
  std::condition_variable changed;
  // What the thread does:
  //
  //   kBeginning ──the library begins──> kLooking ──it is asked to end──> kClosing ──> kStopped
  //        └──it does not────────────────────────────────────────────────────^
  enum class State : std::uint8_t { kBeginning, kLooking, kClosing, kStopped };
  State state = State::kBeginning;
  // What the thread is asked to do, in any state.
  bool over = false;  // to end
  bool at_once = false;
  std::uint64_t looks = 0;
  MonoTime looked{};
  std::set<std::uint32_t> held_down;

  // Whether a look may follow.
  [[nodiscard]] bool goes_on() const {
    return state == State::kBeginning || state == State::kLooking;
  }
  void watch();
  void look_again_and_again(std::unique_lock<std::mutex>& lock);
};

Accelerators::Accelerators(const std::string& library) {
  auto nvml = Nvml::open(library);
  if (!nvml) return;
  shared_ = std::make_shared<Shared>();
  shared_->nvml = std::move(nvml);
  thread_ = std::thread([shared = shared_] { shared->watch(); });
}

Accelerators::~Accelerators() {
  if (!end(kGoodbye)) log_warn("a device holds a call of NVML up");
}

bool Accelerators::end(Duration patience) {
  if (!shared_) return true;
  const auto shared = std::exchange(shared_, nullptr);
  std::unique_lock lock(shared->mutex);
  shared->over = true;
  shared->changed.notify_all();
  const bool stopped = shared->changed.wait_for(
      lock, patience, [&] { return shared->state == Shared::State::kStopped; });
  lock.unlock();
  stopped ? thread_.join() : thread_.detach();
  return stopped;
}

void Accelerators::Shared::watch() {
  const bool begun = nvml->begin();
  std::unique_lock lock(mutex);
  if (begun) {
    state = State::kLooking;
    look_again_and_again(lock);
  }
  state = State::kClosing;
  changed.notify_all();
  lock.unlock();
  nvml.reset();  // this is a call of the library, too
  lock.lock();
  state = State::kStopped;  // no more calls of the library
  changed.notify_all();
}

void Accelerators::Shared::look_again_and_again(std::unique_lock<std::mutex>& lock) {
  while (!over) {
    lock.unlock();
    std::set<std::uint32_t> found = nvml->held_down();
    lock.lock();
    held_down = std::move(found);
    looked = std::chrono::steady_clock::now();
    ++looks;
    changed.notify_all();
    changed.wait_for(lock, kApart, [&] { return over || at_once; });
    at_once = false;
  }
}

std::set<std::uint32_t> Accelerators::held_down() const {
  if (!shared_) return {};
  const std::lock_guard lock(shared_->mutex);
  if (std::chrono::steady_clock::now() - shared_->looked > kNews) return {};
  return shared_->held_down;
}

bool Accelerators::await_look() {
  if (!shared_) return false;
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex);
  const std::uint64_t before = shared.looks;
  // The look that is in progress may have begun before.
  while (shared.looks < before + 2 && shared.goes_on()) {
    shared.at_once = true;
    shared.changed.notify_all();
    const std::uint64_t now = shared.looks;
    shared.changed.wait(lock, [&] { return shared.looks > now || !shared.goes_on(); });
  }
  return shared.goes_on();
}

}  // namespace antdt::antdtd
