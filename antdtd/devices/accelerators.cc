#include "antdtd/devices/accelerators.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "antdtd/devices/nvml.h"
#include "core/log/log.h"

namespace antdt::antdtd {
namespace {

constexpr Duration kApart = std::chrono::seconds(1);
constexpr Duration kNews = std::chrono::seconds(3);
constexpr Duration kGoodbye = std::chrono::seconds(1);
// How long NVML that does not begin is left alone: not for long while the machine starts, and then
// for longer, because each attempt may make the kernel look for a device and write to its log.
constexpr Duration kFirstPause = std::chrono::seconds(2);
constexpr Duration kLongestPause = std::chrono::seconds(60);

}  // namespace

// Data that the thread uses, which may outlive the rest.
struct Accelerators::Shared {
  std::string library;
  std::unique_ptr<Nvml> nvml;  // the thread's own
  std::mutex mutex;
  std::condition_variable changed;
  // What the thread does:
  //
  //   kBeginning ──the library begins──> kLooking ──it is asked to end──> kClosing ──> kStopped
  //        └──it does not──> kTryingAgain ──it begins──> kLooking            ^
  //                                  └───────────it is asked to end──────────┘
  enum class State : std::uint8_t { kBeginning, kTryingAgain, kLooking, kClosing, kStopped };
  State state = State::kBeginning;
  std::string missing;  // kTryingAgain: why it does not begin
  // What the thread is asked to do, in any state.
  bool over = false;  // to end
  bool at_once = false;
  std::uint64_t looks = 0;
  MonoTime asked = std::chrono::steady_clock::now();  // since when the first look is awaited
  MonoTime looked{};
  Nvml::Seen seen;

  // Whether a look may follow.
  [[nodiscard]] bool goes_on() const {
    return state == State::kBeginning || state == State::kLooking;
  }
  void watch();
  [[nodiscard]] Status begin();
  [[nodiscard]] bool begin_in_the_end(std::unique_lock<std::mutex>& lock);
  void look_again_and_again(std::unique_lock<std::mutex>& lock);
};

Accelerators::Accelerators(std::string library, Duration patience)
    : library_(std::move(library)), patience_(patience) {
  auto nvml = Nvml::open(library_);
  if (!nvml) {
    log_debug("no NVML: {}", nvml.error().message);
    not_loaded_ =
        fmt::format("NVML cannot be loaded ({}): install it with the driver and restart antdtd",
                    nvml.error().message);
    return;
  }
  shared_ = std::make_shared<Shared>();
  shared_->library = library_;
  shared_->nvml = std::move(*nvml);
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

// The library may have been replaced with the driver since the last attempt, so it is opened anew.
Status Accelerators::Shared::begin() {
  if (!nvml) {
    ANTDT_TRY(nvml, Nvml::open(library));
  }
  Status begun = nvml->begin();
  if (!begun) nvml.reset();
  return begun;
}

// False if the thread is asked to end before.
bool Accelerators::Shared::begin_in_the_end(std::unique_lock<std::mutex>& lock) {
  for (Duration pause = kFirstPause; !over; pause = std::min(2 * pause, kLongestPause)) {
    lock.unlock();
    const Status begun = begin();
    lock.lock();
    if (begun) return true;
    const std::string why = fmt::format("NVML ({}) does not begin, and is tried again: {}", library,
                                        begun.error().message);
    if (why != missing) log_info("{}", why);
    missing = why;
    state = State::kTryingAgain;
    changed.notify_all();
    changed.wait_for(lock, pause, [&] { return over || at_once; });
    at_once = false;
  }
  return false;
}

void Accelerators::Shared::watch() {
  std::unique_lock lock(mutex);
  if (begin_in_the_end(lock)) {
    asked = std::chrono::steady_clock::now();
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
    Nvml::Seen found = nvml->look();
    lock.lock();
    seen = std::move(found);
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
  return shared_->seen.held_down;
}

// A look that takes long is no trouble as long as the one before it is new enough.
Accelerators::Look Accelerators::look() const {
  Look look;
  look.missing = not_loaded_;
  if (!shared_) return look;
  const std::lock_guard lock(shared_->mutex);
  look.loaded = true;
  look.missing = shared_->state == Shared::State::kTryingAgain ? shared_->missing : "";
  look.watched = shared_->goes_on();
  if (!look.watched) return look;
  look.devices = shared_->seen.devices;
  look.looks = shared_->looks;
  const MonoTime since = shared_->looks == 0 ? shared_->asked : shared_->looked;
  if (std::chrono::steady_clock::now() - since > patience_ + kApart) {
    look.trouble = fmt::format(
        "NVML ({}) has not answered for more than {:g} s: nvidia-smi and the kernel's log (Xid) "
        "say "
        "which device blocks the driver",
        library_, to_seconds(patience_));
  } else if (shared_->looks == 0) {
    look.trouble = fmt::format("NVML ({}) has not answered yet", library_);
    look.pending = true;
  }
  return look;
}

void Accelerators::await_first_look(Duration patience) const {
  if (!shared_) return;
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait_for(lock, patience,
                            [&] { return shared_->looks > 0 || !shared_->goes_on(); });
}

void Accelerators::look_soon() const {
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->at_once = true;
  shared_->changed.notify_all();
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
