#include "trainer/injected/injected_link.h"

#include <algorithm>

namespace antdt::trainer {

void InjectedLink::use(std::vector<Part> parts) {
  std::erase_if(parts, [](const Part& part) { return !part.rules.slows_links(); });
  const std::lock_guard lock(mutex_);
  parts_ = std::move(parts);
  any_ = !parts_.empty();
}

Duration InjectedLink::delay(std::size_t bytes) const {
  if (!any_) return {};
  const MonoTime now = clock_.now();
  const std::lock_guard lock(mutex_);
  Duration added{};
  for (const Part& part : parts_) {
    added += part.rules.link_delay(std::max(Duration{}, now - part.start), step_, bytes);
  }
  return added;
}

}  // namespace antdt::trainer
