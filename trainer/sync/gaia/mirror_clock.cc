#include "trainer/sync/gaia/mirror_clock.h"

#include "core/check.h"

namespace antdt::sync::gaia {

MirrorClock::MirrorClock(std::uint32_t domains, std::uint32_t own, std::uint64_t most_ahead)
    : own_(own), most_ahead_(most_ahead), clocks_(domains, 0), lost_(domains, false) {
  ANTDT_CHECK(own < domains, "domain {} of {}", own, domains);
}

Result<bool> MirrorClock::heard(std::uint32_t domain, std::uint64_t clock) {
  if (domain >= clocks_.size() || domain == own_) {
    return fail(ErrorKind::kCorrupt,
                "a message of updates is of domain {}, which is not another one of the {} domains",
                domain, clocks_.size());
  }
  if (clock <= clocks_[domain]) return false;
  if (clock > clocks_[domain] + 1) {
    return fail(ErrorKind::kCorrupt,
                "message {} of domain {} follows message {}: those between are missing", clock,
                domain, clocks_[domain]);
  }
  clocks_[domain] = clock;
  return true;
}

void MirrorClock::lose(std::uint32_t domain) {
  ANTDT_CHECK(domain != own_, "domain {} says of itself that it is lost", domain);
  lost_[domain] = true;
}

std::vector<std::uint32_t> MirrorClock::awaited() const {
  const std::uint64_t own = clocks_[own_];
  return behind(own > most_ahead_ ? own - most_ahead_ : 0);
}

std::vector<std::uint32_t> MirrorClock::awaited_for_cut(std::uint64_t clock) const {
  return behind(clock);
}

std::vector<std::uint32_t> MirrorClock::behind(std::uint64_t clock) const {
  std::vector<std::uint32_t> domains;
  for (std::uint32_t domain = 0; domain < clocks_.size(); ++domain) {
    if (!lost_[domain] && clocks_[domain] < clock) domains.push_back(domain);
  }
  return domains;
}

}  // namespace antdt::sync::gaia
