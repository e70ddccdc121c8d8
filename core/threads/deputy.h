// A thread that acts for a daemon's loop while the loop waits for a disk.
//
// The loop makes a call that usually takes less than a millisecond and may take minutes, such as a
// commit. It makes the call itself, because to hand it to another thread and back costs more than
// the call. If it lasts, the deputy does what the daemon owes its peers meanwhile.
//
//   idle ──run()──> the call ──(it has lasted for `patience`)──> the deputy acts ──┐
//     ^                │  ^───────────────(each `patience`)────────────────────────┘
//     └──(it returns)──┘     the loop goes on when the deputy has finished
//
// So the deputy never acts beside the loop, and what it does may use all that the loop uses, except
// what the call uses. It must not wait for the same disk.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/clock.h"

namespace antdt {

class Deputy {
 public:
  // Both threads read `clock`.
  Deputy(const Clock& clock, Duration patience);
  ~Deputy();
  Deputy(const Deputy&) = delete;
  Deputy& operator=(const Deputy&) = delete;

  // Runs `call` on this thread, and `meanwhile` on the deputy's each time that `patience` is over.
  // `what` describes the call to people: "committing the journal".
  void run(const char* what, const std::function<void()>& call,
           const std::function<void()>& meanwhile);

  struct Present {
    std::string what;
    Duration lasting{};
  };
  // The call that lasts. Called by whoever may act: the loop, which then finds none, or the deputy.
  [[nodiscard]] std::optional<Present> present() const;

 private:
  void watch();

  const Clock& clock_;
  Duration patience_;
  mutable std::mutex mutex_;  // held by whoever may act
  std::condition_variable changed_;
  bool ending_ = false;
  // Of the present call:
  const char* what_ = nullptr;
  const std::function<void()>* meanwhile_ = nullptr;
  MonoTime begun_{};
  MonoTime acted_{};    // when the deputy acted last, or the call began
  std::thread thread_;  // the last member, because it uses all of the above
};

}  // namespace antdt
