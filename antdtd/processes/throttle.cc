#include "antdtd/processes/throttle.h"

#include <algorithm>

namespace antdt::antdtd {

void Throttles::set(const ProcessKey& key, double share, MonoTime now) {
  const auto known = all_.find(key);
  if (known == all_.end()) {
    if (share < 1) all_.emplace(key, Throttled{share, now});
    return;
  }
  if (known->second.share >= 1) known->second.round = now;
  known->second.share = share;
}

std::optional<MonoTime> Throttles::due_at(const Throttled& t) {
  if (t.stopped_at) return t.share < 1 ? t.round + kRound : *t.stopped_at;
  if (t.share >= 1) return std::nullopt;
  return t.round + from_seconds(t.share * to_seconds(kRound));
}

// If the agent is late, the process's part of the round begins now.
std::vector<Throttles::Order> Throttles::due(MonoTime now) {
  std::vector<Order> orders;
  for (auto& [key, t] : all_) {
    const auto at = due_at(t);
    if (!at || *at > now) continue;
    if (t.stopped_at) {
      t.held_back += now - *t.stopped_at;
      t.stopped_at.reset();
      t.round = now;
      orders.push_back({key, false});
    } else {
      t.stopped_at = now;
      // The round is taken to have begun long enough ago that the process has run its part, however
      // late this is.
      t.round = now - from_seconds(t.share * to_seconds(kRound));
      orders.push_back({key, true});
    }
  }
  return orders;
}

std::optional<MonoTime> Throttles::next_due() const {
  std::optional<MonoTime> next;
  for (const auto& [key, t] : all_) {
    const auto at = due_at(t);
    if (at && (!next || *at < *next)) next = at;
  }
  return next;
}

Duration Throttles::held_back(const ProcessKey& key, MonoTime now) const {
  const auto found = all_.find(key);
  if (found == all_.end()) return {};
  const Throttled& t = found->second;
  return t.held_back + (t.stopped_at ? now - *t.stopped_at : Duration{});
}

std::vector<ProcessKey> Throttles::stopped() const {
  std::vector<ProcessKey> keys;
  for (const auto& [key, t] : all_) {
    if (t.stopped_at) keys.push_back(key);
  }
  return keys;
}

}  // namespace antdt::antdtd
