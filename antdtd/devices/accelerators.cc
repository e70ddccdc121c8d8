#include "antdtd/devices/accelerators.h"

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
  Nvml::Seen seen;

  // Whether a look may follow.
  [[nodiscard]] bool goes_on() const {
    return state == State::kBeginning || state == State::kLooking;
  }
  void watch();
  void look_again_and_again(std::unique_lock<std::mutex>& lock);
};

Accelerators::Accelerators(std::string library, Duration patience)
    : library_(std::move(library)), patience_(patience), began_(std::chrono::steady_clock::now()) {
  auto nvml = Nvml::open(library_);
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
  if (!shared_) return look;
  const std::lock_guard lock(shared_->mutex);
  look.watched = shared_->goes_on();
  if (!look.watched) return look;
  look.devices = shared_->seen.devices;
  look.looks = shared_->looks;
  const MonoTime since = shared_->looks == 0 ? began_ : shared_->looked;
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
