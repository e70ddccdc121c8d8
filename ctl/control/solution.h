// A solution is a policy that turns what the monitor sees into actions. Each is one file in
// solutions/.
//
// decide() is called at every tick at which the last decision has settled. A solution has no I/O,
// clock or randomness; what it remembers between calls is its own. It only wishes: the controller
// decides whether an action is applied, advised or only observed, and limits how often.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "ctl/control/skew_scout.h"
#include "ctl/monitor/view.h"

namespace antdt::ctl {

// These actions are reversible; all members apply them at one agreed step.
struct AdjustBatch {
  // One share for each worker of the view; the sum is the global batch. Either all shares state
  // their micro-batches, or none does.
  std::vector<Share> shares;
  WorkerId because_of;  // the worker that made it necessary
};
struct AdjustLearningRate {
  double factor =
      1;  // factor of the learning rate in the job's file, regardless of earlier factors
};
// Of the strategy of synchronisation: under Gaia its threshold, at the job's full learning rate.
struct SetSync {
  double threshold = 0;
};
struct BackupWorkers {
  std::uint32_t count = 0;  // how many pushes a step need not wait for
};
// These actions are drastic.
struct KillRestart {
  Member member;
  // The name of the host that it is to be started on, if that has room then; empty: any other one.
  std::string host = {};
};
struct Evict {
  Member member;
};
struct Resize {
  std::uint32_t count = 0;
};
using Action = std::variant<AdjustBatch, AdjustLearningRate, SetSync, BackupWorkers, KillRestart,
                            Evict, Resize>;

[[nodiscard]] std::string_view kind_of(
    const Action& action);                                  // "adjust-batch", "kill-restart", ...
[[nodiscard]] std::string target_of(const Action& action);  // "w3", or "job"
[[nodiscard]] bool is_drastic(const Action& action);

struct Decision {
  std::vector<Action> actions;  // usually none
  std::string reason;           // for an engineer: what was seen, what changes, what is expected
};

class Solution {
 public:
  virtual ~Solution() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual Decision decide(const ClusterView& view, MonoTime now) = 0;
  // Whether the view must contain the device classes' curves.
  [[nodiscard]] virtual bool needs_curves() const { return false; }
  // It decides on what visits find (ClusterView::visit), and not on speeds: it is asked at each new
  // visit while the newest plan is in force, and never at a tick.
  [[nodiscard]] virtual bool looks_at_visits() const { return false; }
};

// Of the solution "skew-scout".
struct VisitRules {
  std::uint64_t every = 50;  // steps between visits
  skew::Objective objective = {};
};

// Makes a solution by its name in [control] solution: "none", "dds", "lb-bsp", "backup-workers",
// "nd", "dd", "skew-scout" or "command". The error lists these names.
[[nodiscard]] Result<std::unique_ptr<Solution>> make_solution(std::string_view name,
                                                              const VisitRules& visits = {});

}  // namespace antdt::ctl
