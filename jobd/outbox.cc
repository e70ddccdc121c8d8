#include "jobd/outbox.h"

#include <algorithm>
#include <iterator>

namespace antdt::jobd {

std::optional<Route> Outbox::route_to(Member member, const ctl::Lifecycle& life) const {
  if (inbound_ && inbound_->first == member) return inbound_->second;
  const auto route = routes_.find(member.worker);
  if (route != routes_.end()) return route->second;
  const ctl::WorkerProcess* placed = life.find(member.worker);
  if (placed == nullptr || placed->place.host.empty()) return {};
  return Route{placed->place.host, ""};
}

void HeldTurns::add(std::vector<Outgoing> messages) {
  if (!messages.empty()) turns_.push_back({std::move(messages), std::nullopt});
}

std::uint64_t HeldTurns::add_waiting(std::vector<Outgoing> messages, MonoTime now) {
  turns_.push_back({std::move(messages), now + kPatience});
  return first_ + turns_.size() - 1;
}

void HeldTurns::history_kept(std::uint64_t number) {
  if (number >= first_) turns_.at(number - first_).waits_until.reset();
}

std::vector<Outgoing> HeldTurns::take_due(MonoTime now) {
  std::vector<Outgoing> due;
  while (!turns_.empty()) {
    Turn& turn = turns_.front();
    if (turn.waits_until && now < *turn.waits_until) break;
    std::ranges::move(turn.messages, std::back_inserter(due));
    turns_.pop_front();
    ++first_;
  }
  return due;
}

}  // namespace antdt::jobd
