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
  // Who the other members are, by rank, for rules about messages to some of them.
  void know(std::vector<drill::Target> members);
  // How much longer a message of `bytes` bytes takes if it is sent now, by the rules that do not
  // ask to whom.
  [[nodiscard]] Duration delay(std::size_t bytes) const { return delay_to(nullptr, bytes).held; }
  // The same for a message to the member of this rank, by all rules.
  [[nodiscard]] drill::LinkDelay delay(std::uint32_t rank, std::size_t bytes) const;

 private:
  [[nodiscard]] drill::LinkDelay delay_to(const std::uint32_t* rank, std::size_t bytes) const;

  const Clock& clock_;
  std::atomic<bool> any_ = false;
  std::atomic<std::uint64_t> step_ = 0;
  mutable std::mutex mutex_;
  std::vector<Part> parts_;
  std::vector<drill::Target> members_;
};

}  // namespace antdt::trainer
