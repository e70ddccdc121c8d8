#include "sim/world.h"

#include <algorithm>
#include <functional>

namespace antdt::sim {

void World::schedule(MonoTime when, std::optional<std::weak_ptr<Life::State>> life, Action action) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(scheduled_.size()));
    scheduled_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  scheduled_[place] = {std::move(life), std::move(action)};
  queue_.push_back({std::max(when, now_), ++numbers_, place});
  std::ranges::push_heap(queue_, std::less{});
}

bool World::run_one() {
  if (queue_.empty()) return false;
  std::ranges::pop_heap(queue_, std::less{});
  const Due due = queue_.back();
  queue_.pop_back();
  Scheduled next = std::move(scheduled_[due.place]);
  free_.push_back(due.place);
  now_ = due.when;
  ++events_;
  if (next.life) {
    const auto state = next.life->lock();
    if (!state) return true;
    if (state->frozen > 0) {
      state->postponed.push_back(std::move(next.action));
      return true;
    }
  }
  next.action();
  return true;
}

void World::violate(std::string invariant, std::string detail) {
  if (violation_) return;
  say("VIOLATION of {}: {}", invariant, detail);
  violation_ = Violation{std::move(invariant), std::move(detail), events_};
}

void World::say_line(const std::string& line) {
  fmt::format_to(std::back_inserter(transcript_), "{:10.4f} #{} {}\n", to_seconds(elapsed()),
                 events_, line);
}

}  // namespace antdt::sim
