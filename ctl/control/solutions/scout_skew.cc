#include "ctl/control/solutions/scout_skew.h"

#include <algorithm>

namespace antdt::ctl::solutions {

void ScoutSkew::begin_at(double threshold) {
  skew::ScoutOptions options;
  options.objective = rules_.objective;
  options.every = 1;  // the members count the steps
  options.initial = threshold;
  options.least = std::min(options.least, threshold);
  options.most = std::max(options.most, threshold);
  scout_.emplace(options);
}

Decision ScoutSkew::decide(const ClusterView& view, MonoTime now) {
  if (!view.visit || !view.threshold || *view.threshold <= 0) return {};
  const wire::Visit& visit = *view.visit;
  if (visit.threshold != *view.threshold || 2 * visit.steps < rules_.every) return {};
  if (!scout_ || scout_->threshold() != *view.threshold) begin_at(*view.threshold);
  skew::Effects effects;
  scout_->step(skew::Trained{visit.steps, static_cast<double>(visit.sent_bytes),
                             static_cast<double>(visit.dense_bytes)},
               now, effects);
  scout_->step(skew::Visited{accuracy_loss(visit)}, now, effects);
  for (const skew::Effect& effect : effects) {
    if (const auto* set = std::get_if<skew::SetThreshold>(&effect)) {
      return {{SetSync{set->threshold}}, set->reason};
    }
  }
  return {};
}

}  // namespace antdt::ctl::solutions
