#include "ctl/monitor/slow_links.h"

#include <algorithm>

namespace antdt::ctl {
namespace {

constexpr double kSlowRatio = 2;
// What processes differ by that are woken sooner or later: on fast links it is more than
// the way. For the 16 KiB there and back it is what 1.3 Gbit/s take.
constexpr double kLeastMore_s = 0.2e-3;
// One measurement may be anything.
constexpr std::uint32_t kLeastMeasured = 2;
constexpr std::size_t kLeastMembers = 3;

// What hops take that are not slow. Of three two may be those of one slow worker, so it is
// what the faster half takes at most. Nothing: too few to tell.
std::optional<double> usual_of(const std::vector<Hop>& hops) {
  std::vector<double> means;
  for (const Hop& hop : hops) {
    if (hop.measured >= kLeastMeasured) means.push_back(hop.mean_s);
  }
  if (means.size() < kLeastMembers) return std::nullopt;
  const auto middle = means.begin() + static_cast<std::ptrdiff_t>((means.size() - 2) / 2);
  std::ranges::nth_element(means, middle);
  return *middle;
}

double slow_from(double usual) { return std::max(kSlowRatio * usual, usual + kLeastMore_s); }

bool is_slow(const Hop& hop, double usual) {
  return hop.measured >= kLeastMeasured && hop.least_s > slow_from(usual);
}

bool is_fast(const Hop& hop, double usual) {
  return hop.measured >= kLeastMeasured && hop.mean_s <= slow_from(usual);
}

// One measurement is enough for this: whoever else looks slow can wait for a second one.
void note_the_slowest(std::vector<SlowLink>& links, const std::vector<Hop>& hops) {
  double slowest = 0;
  for (const Hop& hop : hops) slowest = std::max(slowest, hop.least_s);
  for (SlowLink& link : links) link.slowest_s = slowest;
}

}  // namespace

std::vector<SlowLink> find_slow_spokes(const std::vector<Hop>& hops) {
  const auto usual = usual_of(hops);
  std::vector<SlowLink> found;
  for (std::size_t i = 0; usual && i < hops.size(); ++i) {
    const double hop = hops[i].least_s;
    // Nobody waits for the spoke of another.
    if (is_slow(hops[i], *usual)) found.push_back({i, std::nullopt, hop, *usual, hop});
  }
  return found;
}

std::vector<SlowLink> find_slow_links(const std::vector<Hop>& hops) {
  const std::size_t size = hops.size();
  const auto known = usual_of(hops);
  if (!known) return {};
  const double usual = *known;
  std::vector<bool> slow(size);
  for (std::size_t rank = 0; rank < size; ++rank) slow[rank] = is_slow(hops[rank], usual);
  const auto left = [&](std::size_t rank) { return (rank + size - 1) % size; };
  const auto right = [&](std::size_t rank) { return (rank + 1) % size; };
  const auto both = [&](std::size_t rank) { return slow[rank] && slow[left(rank)]; };
  // The hop from this rank is slow, and neither of those next to it.
  const auto alone = [&](std::size_t rank) {
    return slow[rank] && is_fast(hops[left(rank)], usual) && is_fast(hops[right(rank)], usual);
  };
  std::vector<SlowLink> found;
  for (std::size_t rank = 0; rank < size; ++rank) {
    if (both(rank)) {
      const double hop = (hops[rank].least_s + hops[left(rank)].least_s) / 2;
      found.push_back({rank, std::nullopt, hop, usual});
    } else if (alone(rank)) {
      found.push_back({rank, right(rank), hops[rank].least_s, usual});
    } else if (alone(left(rank))) {
      found.push_back({rank, left(rank), hops[left(rank)].least_s, usual});
    }
  }
  note_the_slowest(found, hops);
  return found;
}

double slowdown_by(const SlowLink& link, double step_s, double collective_s) {
  if (link.hop_s <= link.usual_s || step_s <= 0) return 1;
  const double lost = std::min(collective_s, step_s) * (link.hop_s - link.usual_s) / link.slowest_s;
  // However slow the link, something of the step is its own.
  return step_s / std::max(step_s - lost, 1e-3 * step_s);
}

}  // namespace antdt::ctl
