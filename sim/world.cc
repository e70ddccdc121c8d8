#include "sim/world.h"

namespace antdt::sim {

bool World::run_one() {
  if (queue_.empty()) return false;
  auto next = queue_.extract(queue_.begin());
  now_ = next.key().first;
  ++events_;
  next.mapped()();
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
