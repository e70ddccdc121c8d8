#include "trainer/sync/gaia/flush_ledger.h"

#include <algorithm>

#include "core/check.h"

namespace antdt::sync::gaia {

FlushLedger::FlushLedger(const std::vector<std::uint64_t>& places)
    : sent_(places.size()),
      applied_(places.size(), std::vector<std::uint64_t>(places.size(), 0)),
      lost_(places.size(), false) {
  ANTDT_CHECK(!places.empty(), "a ledger of no domains");
  for (std::size_t i = 0; i < places.size(); ++i) sent_[i].push_back({0, places[i], true});
}

void FlushLedger::sent(std::uint32_t domain, std::uint64_t place, bool whole) {
  const Sent last = sent_[domain].back();
  ANTDT_CHECK(!lost_[domain] && place >= last.place, "domain {} goes from place {} to {}", domain,
              last.place, place);
  sent_[domain].push_back({last.clock + 1, place, whole});
  applied_[domain][domain] = last.clock + 1;
}

void FlushLedger::applied(std::uint32_t holder, std::uint32_t origin, std::uint64_t clock) {
  ANTDT_CHECK(holder != origin && !lost_[holder], "domain {} applies messages of {}", holder,
              origin);
  std::uint64_t& has = applied_[holder][origin];
  ANTDT_CHECK(clock >= has && clock <= sent_[origin].back().clock,
              "domain {} applied messages of {} up to {}, then up to {} of {}", holder, origin, has,
              clock, sent_[origin].back().clock);
  has = clock;
  forget(origin);
}

void FlushLedger::lose(std::uint32_t domain) {
  lost_[domain] = true;
  for (std::uint32_t origin = 0; origin < domains(); ++origin) forget(origin);
}

FlushLedger::Repair FlushLedger::repair(std::uint32_t holder, std::uint32_t origin) const {
  ANTDT_CHECK(!lost_[holder] && lost_[origin], "domain {} repairs what {} has sent", holder,
              origin);
  return {whole_until(origin, greatest(origin)).clock, applied_[holder][origin]};
}

void FlushLedger::repaired(std::uint32_t holder, std::uint32_t origin) {
  applied_[holder][origin] = repair(holder, origin).until;
}

std::uint64_t FlushLedger::committable(std::uint32_t origin) const {
  return whole_until(origin, least(origin)).place;
}

std::uint64_t FlushLedger::merged(std::uint32_t origin) const {
  return whole_until(origin, greatest(origin)).place;
}

std::uint64_t FlushLedger::in_part(std::uint32_t origin) const {
  const std::uint64_t furthest = greatest(origin);
  const auto& sent = sent_[origin];
  const auto at = furthest - sent.front().clock;
  return sent[static_cast<std::size_t>(at)].place - merged(origin);
}

std::uint64_t FlushLedger::kept_after(std::uint32_t origin) const {
  return sent_[origin].front().clock;
}

std::uint64_t FlushLedger::least(std::uint32_t origin) const {
  std::uint64_t clock = sent_[origin].back().clock;
  for (std::uint32_t holder = 0; holder < domains(); ++holder) {
    if (holder != origin && !lost_[holder]) clock = std::min(clock, applied_[holder][origin]);
  }
  return clock;
}

std::uint64_t FlushLedger::greatest(std::uint32_t origin) const {
  std::uint64_t clock = sent_[origin].front().clock;
  for (std::uint32_t holder = 0; holder < domains(); ++holder) {
    if (holder != origin && !lost_[holder]) clock = std::max(clock, applied_[holder][origin]);
  }
  return clock;
}

const FlushLedger::Sent& FlushLedger::whole_until(std::uint32_t origin, std::uint64_t clock) const {
  const auto& sent = sent_[origin];
  const Sent* found = &sent.front();
  for (const Sent& one : sent) {
    if (one.clock > clock) break;
    if (one.whole) found = &one;
  }
  return *found;
}

void FlushLedger::forget(std::uint32_t origin) {
  const std::uint64_t from = whole_until(origin, least(origin)).clock;
  while (sent_[origin].front().clock < from) sent_[origin].pop_front();
}

}  // namespace antdt::sync::gaia
