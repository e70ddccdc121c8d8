// How the members of a collective agree on the model: what precedes computing in a step, what is
// applied, and what that means for records and replicas. Pure.
//
//   a step: (mix with a group) -> compute -> (sum gradients) -> gather slots -> apply, or drop
//
// GradientSum: all members apply the same sum, so replicas are always equal, and a record is in all
// of them when its step has completed. DsSync: each member mixes its parameters with a group, which
// changes with each step, and then applies its own gradient. Its records are at first in its own
// replica; a ledger (trainer/sync/merge_ledger.h) knows which are where. docs/synchronisation
//
// The training phase and the formation of a generation ask this class and know no strategy. It
// outlives a generation: when members were lost, it says what is in the replicas of the others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "trainer/sync/ds_sync/groups.h"
#include "trainer/sync/merge_ledger.h"
#include "trainer/worker/step_slot.h"
#include "trainer/worker/worker_config.h"

namespace antdt::worker {

class StepExchange {
 public:
  explicit StepExchange(const ExchangeRules& rules) : rules_(rules) {}

  // A training phase begins, or goes on in a new generation: all replicas are equal, and the places
  // of all ranks are 0.
  void begin(std::uint32_t rank, std::uint32_t members);

  // ------------------------------------------------------------------ the step after `step`
  struct Course {
    // Before it computes, this member mixes its parameters with these ranks, itself among them;
    // with fewer than two: with nobody.
    std::vector<std::uint32_t> mixes_with;
    bool local = false;  // gradients stay with the members, and are not summed
  };
  [[nodiscard]] Course course(Step step) const;
  // What divides a member's gradient in a step of all records' `weight`.
  [[nodiscard]] double divisor(double weight) const;

  // ------------------------------------------------------------------ what all concluded
  // The step after `step`: applied, or dropped. Returns whether replicas may differ because of it.
  // Then they must be consolidated before anybody relies on one (TrainingState::consolidated).
  [[nodiscard]] bool concluded(Step step, const Agreement& agreed);
  void consolidated();

  // ------------------------------------------------------------------ what that means
  // By rank, up to which place records may be committed.
  [[nodiscard]] std::span<const std::uint64_t> committable() const { return committable_; }
  // By rank, up to which place records are in the model that these ranks, one at least, go on with,
  // if their replicas differ.
  [[nodiscard]] std::vector<std::uint64_t> merged(std::span<const std::uint32_t> holders) const;

 private:
  struct Mixing {
    sync::ds_sync::GroupSchedule schedule;
    sync::MergeLedger ledger;
  };
  const ExchangeRules rules_;
  std::uint32_t rank_ = 0;
  std::uint32_t members_ = 1;
  std::optional<Mixing> mixing_;       // of DsSync
  std::vector<std::uint64_t> places_;  // of GradientSum: after the last concluded step
  std::vector<std::uint64_t> committable_;
};

}  // namespace antdt::worker
