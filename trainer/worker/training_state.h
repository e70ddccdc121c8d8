// The training state of a member of a collective, apart from the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/membership_messages.h"
#include "trainer/worker/step_log.h"

namespace antdt::worker {

// How much this member computes in a step, by the plan in force.
struct Share {
  PlanVersion version;
  std::uint32_t micro_batch = 0;
  std::uint32_t accumulation = 1;
  double rate = 1;                       // factor of the job's learning rate
  std::optional<double> threshold = {};  // of Gaia; empty: the job's own
  [[nodiscard]] std::uint64_t samples() const { return std::uint64_t{micro_batch} * accumulation; }
};
// The entry of `worker`; a worker that the plan leaves out computes nothing.
[[nodiscard]] inline Share share_of(const wire::Plan& plan, WorkerId worker) {
  for (const wire::PlanEntry& entry : plan.entries) {
    if (entry.worker != worker) continue;
    return {plan.version, entry.micro_batch, entry.accumulation, plan.rate, plan.threshold};
  }
  return {plan.version, 0, 1, plan.rate, plan.threshold};
}

// It outlives generations. What belongs to the model (step, phase, places, sums, checkpoint) is a
// function of the last completed step, so members at the same step report the same.
struct TrainingState {
  Step step;  // the last completed step
  // Of that step: what its gradients were divided by (0: it changed nothing), and the factor of the
  // learning rate.
  double weight = 0;
  double rate = 1;
  // The checkpoint that contains this step and no later one, if this generation agreed on one; 0:
  // none.
  std::uint64_t cut = 0;
  Share share;
  std::uint64_t checkpoint = 0;   // number of the last one that was written or skipped
  std::vector<WorkerId> members;  // by rank, in the newest generation that was connected

  // The newest settled generation whose state this member holds completely; 0: none, or the
  // beginning.
  Generation settled;
  // The generation in which replicas of this state were made equal, if none was changed alone
  // since; 0: they may differ, or nothing has settled yet.
  Generation consolidated;
  bool pristine = true;  // a beginning that no step has changed
  // The training phase of the last steps: its number, the places of the members of `settled` in it,
  // and the weighted loss of all its steps.
  std::uint64_t phase = 0;
  std::vector<wire::MemberPlace> places;
  double loss_sum = 0;
  double weight_sum = 0;
  StepLog log;  // of the steps of `settled`

  // In `generation`, replicas that differed became this one: of the members of `settled`, it
  // contains the records up to these places, by rank.
  void consolidate(Generation generation, const std::vector<std::uint64_t>& merged);

  // The generation settled with these members, whose places all begin at 0 and whose replicas are
  // equal.
  void settle(Generation generation, const std::vector<WorkerId>& its_members);
  // Nothing of it is left: another state replaces it, or is read.
  void forget();
};

// The metadata of the state, besides the model, as bytes for a member that receives it.
[[nodiscard]] std::string meta_of(const TrainingState& state);
[[nodiscard]] Status take_over(const std::string& meta, TrainingState& state);

}  // namespace antdt::worker
