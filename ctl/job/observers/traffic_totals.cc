#include "ctl/job/observers/traffic_totals.h"

#include <algorithm>
#include <vector>

namespace antdt::ctl {
namespace {

// A worker lists its hosts in the same order each time, so the line is mostly at the same `place`:
// with many hosts, and thousands of workers that report each second, a search would be dear.
const wire::HostTraffic* line_in(const wire::TrafficSums& sums, const wire::HostTraffic& like,
                                 std::size_t place) {
  const auto is_alike = [&](const wire::HostTraffic& line) {
    return line.to == like.to && line.to_domain == like.to_domain && line.from == like.from &&
           line.from_domain == like.from_domain;
  };
  if (place < sums.hosts.size() && is_alike(sums.hosts[place])) return &sums.hosts[place];
  const auto found = std::ranges::find_if(sums.hosts, is_alike);
  return found == sums.hosts.end() ? nullptr : &*found;
}

}  // namespace

void TrafficTotals::told(Member member, const wire::TrafficSums& so_far) {
  if (so_far.hosts.empty()) return;
  Told& before = told_[member.worker];
  if (member.attempt < before.attempt) return;  // late
  if (before.attempt < member.attempt) before = {member.attempt, {}};
  // Reports of one attempt that overtake one another: the newer one has told more.
  if (so_far.bytes() < before.sums.bytes()) return;
  kinds_.gradients_bytes += so_far.gradients - before.sums.gradients;
  kinds_.parameters_bytes += so_far.parameters - before.sums.parameters;
  kinds_.slots_bytes += so_far.slots - before.sums.slots;
  kinds_.healing_bytes += so_far.healing - before.sums.healing;
  kinds_.other_bytes += so_far.other - before.sums.other;
  kinds_.shared_memory_bytes += so_far.in_memory - before.sums.in_memory;
  for (std::size_t place = 0; place < so_far.hosts.size(); ++place) {
    const wire::HostTraffic& now = so_far.hosts[place];
    const wire::HostTraffic* known = line_in(before.sums, now, place);
    add(now, known == nullptr ? wire::HostTraffic{} : *known);
  }
  before.sums = so_far;
}

void TrafficTotals::add(const wire::HostTraffic& now, const wire::HostTraffic& before) {
  for (Sum* sum : {&hosts_[{now.from, now.from_domain, now.to, now.to_domain}],
                   &domains_[{"", now.from_domain, "", now.to_domain}]}) {
    sum->sent_bytes += now.sent_bytes - before.sent_bytes;
    sum->received_bytes += now.received_bytes - before.received_bytes;
    sum->waited_us += now.waited_us - before.waited_us;
  }
}

report::TrafficBetween TrafficTotals::line_of(const Pair& pair, const Sum& sum) {
  const auto& [from, from_domain, to, to_domain] = pair;
  return {from,
          from_domain,
          to,
          to_domain,
          sum.sent_bytes,
          sum.received_bytes,
          static_cast<double>(sum.waited_us) / 1e6};
}

std::optional<report::Traffic> TrafficTotals::report() const {
  if (hosts_.empty()) return std::nullopt;
  report::Traffic out = kinds_;
  std::vector<const std::pair<const Pair, Sum>*> pairs;
  for (const auto& pair : hosts_) pairs.push_back(&pair);
  if (pairs.size() > kMostPairs) {
    out.hosts_left_out = pairs.size() - kMostPairs;
    std::ranges::nth_element(pairs, pairs.begin() + kMostPairs, [](const auto* a, const auto* b) {
      return a->second.sent_bytes + a->second.received_bytes >
             b->second.sent_bytes + b->second.received_bytes;
    });
    pairs.resize(kMostPairs);
    std::ranges::sort(pairs, {}, [](const auto* pair) { return pair->first; });
  }
  for (const auto* pair : pairs) out.hosts.push_back(line_of(pair->first, pair->second));
  const bool any_domain = std::ranges::any_of(domains_, [](const auto& pair) {
    return !std::get<1>(pair.first).empty() || !std::get<3>(pair.first).empty();
  });
  if (!any_domain) return out;
  for (const auto& [pair, sum] : domains_) out.domains.push_back(line_of(pair, sum));
  return out;
}

}  // namespace antdt::ctl
