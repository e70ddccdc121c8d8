#include "sim/hosts/process.h"

#include <utility>

namespace antdt::sim {

void Process::after(Duration delay, World::Action action) {
  world_.after(life_, delay, [this, action = std::move(action)] {
    if (frozen_ > 0) {
      postponed_.push_back(action);
    } else {
      action();
    }
  });
}

void Process::thaw() {
  if (frozen_ == 0 || --frozen_ > 0) return;
  for (World::Action& action : std::exchange(postponed_, {})) after({}, std::move(action));
}

void Process::end() {
  life_.end();
  frozen_ = 0;
  postponed_.clear();
}

}  // namespace antdt::sim
