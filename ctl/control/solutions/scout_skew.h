// SkewScout for jobs whose domains send one another updates (trainer.sync = "gaia"): what visits
// find goes to the machine that decides (ctl/control/skew_scout.h), and its threshold becomes an
// action.
//
// Members visit by themselves, in every `every`-th step. A visit counts if replicas have drifted
// apart for half of these steps at least with the threshold in force: after a change of the
// threshold, or once replicas were made equal, it says less. If the threshold in force is not the
// one that the machine last chose (the job daemon or the run began again, or the action was only
// advised), the machine begins anew from that in force, without measurements.
#pragma once

#include <optional>

#include "ctl/control/solution.h"

namespace antdt::ctl::solutions {

class ScoutSkew final : public Solution {
 public:
  explicit ScoutSkew(const VisitRules& rules) : rules_(rules) {}

  [[nodiscard]] std::string_view name() const override { return "skew-scout"; }
  [[nodiscard]] bool looks_at_visits() const override { return true; }
  [[nodiscard]] Decision decide(const ClusterView& view, MonoTime now) override;

 private:
  void begin_at(double threshold);

  const VisitRules rules_;
  std::optional<skew::SkewScout> scout_;
};

}  // namespace antdt::ctl::solutions
