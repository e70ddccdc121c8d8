#include "trainer/injected/injected_link.h"

#include <algorithm>
#include <utility>

namespace antdt::trainer {

void InjectedLink::use(std::vector<Part> parts) {
  std::erase_if(parts, [](const Part& part) { return !part.rules.slows_links(); });
  const std::lock_guard lock(mutex_);
  parts_ = std::move(parts);
  any_ = !parts_.empty();
}

void InjectedLink::know(std::vector<drill::Target> members) {
  const std::lock_guard lock(mutex_);
  members_ = std::move(members);
}

drill::LinkDelay InjectedLink::delay(std::uint32_t rank, std::size_t bytes) const {
  return delay_to(&rank, bytes);
}

drill::LinkDelay InjectedLink::delay_to(const std::uint32_t* rank, std::size_t bytes) const {
  if (!any_) return {};
  const MonoTime now = clock_.now();
  const std::lock_guard lock(mutex_);
  const bool known = rank != nullptr && *rank < members_.size();
  const drill::Target* const to = known ? &members_[*rank] : nullptr;
  drill::LinkDelay all;
  for (const Part& part : parts_) {
    const drill::LinkDelay more =
        part.rules.link_delay(std::max(Duration{}, now - part.start), step_, bytes, to);
    all.held += more.held;
    all.latency += more.latency;
    all.transfer += more.transfer;
  }
  return all;
}

}  // namespace antdt::trainer
