// What [[inject]] and `antdt inject` do to the messages of this process to its peers.
// Written by the training thread; any thread that sends asks.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/clock.h"
#include "core/drill/injection.h"

namespace antdt::trainer {

class InjectedLink {
 public:
  struct Part {
    drill::Injection rules;
    MonoTime start{};  // of their time
  };
  explicit InjectedLink(const Clock& clock) : clock_(clock) {}

  // In place of what was said before.
  void use(std::vector<Part> parts);
  void at_step(std::uint64_t step) { step_ = step; }
  // How much longer a message of so many bytes takes that is sent now.
  [[nodiscard]] Duration delay(std::size_t bytes) const;

 private:
  const Clock& clock_;
  std::atomic<bool> any_ = false;
  std::atomic<std::uint64_t> step_ = 0;
  mutable std::mutex mutex_;
  std::vector<Part> parts_;
};

}  // namespace antdt::trainer
