#include "ctl/monitor/looks.h"

#include <algorithm>

namespace antdt::ctl {
namespace {

// Agents look about once a second, whatever the window.
constexpr Duration kLeastKept = std::chrono::seconds(3);
// A host that has not looked for so long does not look.
constexpr Duration kLooksWithin = std::chrono::seconds(2);
// A slow link is measured less often (trainer/worker/member/hop_timer.h).
constexpr Duration kHopsKept = std::chrono::seconds(6);
constexpr double kSecondsPerUs = 1e-6;

template <class T>
void drop_before(std::deque<T>& all, MonoTime time) {
  while (!all.empty() && all.front().when < time) all.pop_front();
}

void add_up(wire::HostProbe& sum, const wire::HostProbe& more) {
  sum.looked_us += more.looked_us;
  sum.ran_us += more.ran_us;
  sum.queued_us += more.queued_us;
  sum.throttled_us += more.throttled_us;
  sum.stolen_us += more.stolen_us;
  sum.cpu_stalled_us += more.cpu_stalled_us;
  sum.io_stalled_us += more.io_stalled_us;
  sum.memory_stalled_us += more.memory_stalled_us;
  sum.clocks_us += more.clocks_us;
}

}  // namespace

Looks::Looks(Duration length) : length_(length) {}

void Looks::add(const wire::Metrics& metrics, MonoTime now) {
  drop_before(looks_, now - std::max(length_, kLeastKept));
  drop_before(hops_, now - std::max(length_, kHopsKept));
  if (!first_) first_ = now;
  if (metrics.probe.looked_us > 0) {
    looks_.push_back({now, metrics.probe});
    looked_ = now;
  }
  const wire::Report& sum = metrics.sum;
  if (sum.hops > 0) hops_.push_back({now, sum.hops, sum.hop_us, sum.hop_least_us});
}

HostSigns Looks::signs(MonoTime since, MonoTime now) const {
  wire::HostProbe sum;
  const MonoTime oldest = now - std::max(length_, kLeastKept);
  const auto enough = static_cast<std::uint64_t>(to_seconds(length_) / 2 / kSecondsPerUs);
  for (auto look = looks_.rbegin(); look != looks_.rend(); ++look) {
    const MonoTime began = look->when - std::chrono::microseconds(look->probe.looked_us);
    if (look->when < oldest || sum.looked_us >= enough) break;
    if (sum.looked_us > 0 && began < since) break;
    add_up(sum, look->probe);
  }
  return signs_of(sum);
}

bool Looks::seen_since(MonoTime since, MonoTime now) const {
  if (!looked_) return first_ && now - *first_ >= kLooksWithin;
  if (!looks_.empty()) {
    const Look& newest = looks_.back();
    if (newest.when - std::chrono::microseconds(newest.probe.looked_us / 2) >= since) return true;
  }
  return now - std::max(since, *looked_) >= kLooksWithin;
}

Hop Looks::hop(MonoTime now) const {
  Hop hop;
  std::uint64_t us = 0;
  std::uint64_t least_us = 0;
  const MonoTime oldest = now - std::max(length_, kHopsKept);
  for (auto hops = hops_.rbegin(); hops != hops_.rend(); ++hops) {
    if (hops->when < oldest || (hop.measured >= 2 && hops->when < now - length_)) break;
    least_us = hop.measured == 0 ? hops->least_us : std::min(least_us, hops->least_us);
    hop.measured += hops->measured;
    us += hops->us;
  }
  if (hop.measured == 0) return hop;
  hop.mean_s = kSecondsPerUs * static_cast<double>(us) / hop.measured;
  hop.least_s = kSecondsPerUs * static_cast<double>(least_us);
  return hop;
}

}  // namespace antdt::ctl
