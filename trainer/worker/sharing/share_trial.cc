#include "trainer/worker/sharing/share_trial.h"

#include <algorithm>
#include <cmath>

#include "core/overloaded.h"

namespace antdt::worker::sharing {

ShareTrial::ShareTrial(const TrialRules& rules)
    : rules_(rules), state_(Sharing{}), settling_(rules.settling), distance_(rules.first) {}

bool ShareTrial::shares() const {
  const Overloaded shares{
      [](const Sharing&) { return true; },
      [](const Alone&) { return false; },
      [&](const Trying& trial) {
        const std::uint32_t block = (trial.shared.steps + trial.alone.steps) / rules_.block;
        return block % 4 == 0 || block % 4 == 3;
      },
  };
  return std::visit(shares, state_);
}

void ShareTrial::concluded(const StepTimes& step) {
  if (settling_ > 0) {
    --settling_;
    return;
  }
  state_ = std::visit([&](const auto& state) { return after(state, step); }, state_);
}

// From: sharing. To: sharing, trying.
ShareTrial::State ShareTrial::after(Sharing state, const StepTimes& step) {
  if (!step.shared) return state;  // the members knew its kind before the trial ended
  state.steps.add(to_seconds(step.took));
  state.asked_s += to_seconds(step.asked);
  const double usual_s = state.steps.mean_s();
  const bool dear = !newest_ && state.asked_s > rules_.dear * usual_s;
  if (dear || state.steps.steps >= distance_) return Trying{usual_s};
  return state;
}

// From: alone. To: alone, trying.
ShareTrial::State ShareTrial::after(Alone state, const StepTimes& step) {
  if (step.shared) return state;  // as above
  ++state.steps;
  state.watched.add(to_seconds(step.took));
  if (state.watched.steps < rules_.watched) return state;
  const double now_s = state.watched.mean_s();
  const bool slower = now_s > rules_.slower * state.usual_s;
  if (slower) distance_ = rules_.first;
  if (slower || state.steps >= distance_) return Trying{now_s};
  state.watched = {};
  return state;
}

// From: trying. To: trying, sharing, alone.
ShareTrial::State ShareTrial::after(Trying state, const StepTimes& step) {
  const double took_s = to_seconds(step.took);
  state.took_s += took_s;
  const double counted_s = std::min(took_s, rules_.outlier * state.usual_s);
  (step.shared ? state.shared : state.alone).add(counted_s);
  const std::uint32_t each = std::min(state.shared.steps, state.alone.steps);
  if (each == 0) return state;
  const double shared_s = state.shared.mean_s();
  const double alone_s = state.alone.mean_s();
  const double gained = each * (alone_s - shared_s) / std::min(alone_s, shared_s);
  if (std::abs(gained) < rules_.stake && each < rules_.most) return state;
  return end(state, gained);
}

// To: sharing, alone. `gained`: so many steps, by sharing as many as were computed alone.
ShareTrial::State ShareTrial::end(const Trying& trial, double gained) {
  const bool shares = gained > -rules_.stake;
  newest_ = Choice{shares, from_seconds(trial.shared.mean_s()), from_seconds(trial.alone.mean_s())};
  const double usual_s = std::min(trial.shared.mean_s(), trial.alone.mean_s());
  const double cost = trial.took_s / usual_s - trial.shared.steps - trial.alone.steps;
  distance_ = std::min(std::max(2 * distance_, rules_.rest * cost), rules_.rarest);
  if (shares) return Sharing{};
  return Alone{trial.alone.mean_s()};
}

}  // namespace antdt::worker::sharing
