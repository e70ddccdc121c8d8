// The effect of [[inject]] and `antdt inject` on messages of this process to its peers. The
// training thread sets it; any thread that sends reads it.
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
    MonoTime start{};  // when the times of these rules begin
  };
  explicit InjectedLink(const Clock& clock) : clock_(clock) {}

  // Replaces what was set before.
  void use(std::vector<Part> parts);
  void at_step(std::uint64_t step) { step_ = step; }
  // How much longer a message of `bytes` bytes takes if it is sent now.
  [[nodiscard]] Duration delay(std::size_t bytes) const;

 private:
  const Clock& clock_;
  std::atomic<bool> any_ = false;
  std::atomic<std::uint64_t> step_ = 0;
  mutable std::mutex mutex_;
  std::vector<Part> parts_;
};

}  // namespace antdt::trainer
