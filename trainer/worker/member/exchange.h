// How the members of a collective agree on the model: what precedes computing in a step, what is
// applied, and what that means for records and replicas. Pure.
//
//   a step: (mix with a group, or exchange updates) -> compute -> (sum gradients) -> gather slots
//           -> apply, or drop
//
// GradientSum: all members apply the same sum, so replicas are always equal, and a record is in all
// of them when its step has completed. DsSync: each member mixes its parameters with a group, which
// changes with each step, and then applies its own gradient. Its records are at first in its own
// replica; a ledger (trainer/sync/merge_ledger.h) knows which are where. Gaia: domains send one
// another what is significant of their updates, and now and then everything; then each applies the
// sum of its own members' gradients. Its records are at first in its own replica, and in those of
// others in part (trainer/sync/gaia/step_ledger.h). docs/synchronisation
//
// The training phase and the formation of a generation ask this class and know no strategy. It
// outlives a generation: when members were lost, it says what is in the replicas of the others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "trainer/sync/ds_sync/groups.h"
#include "trainer/sync/gaia/step_ledger.h"
#include "trainer/sync/merge_ledger.h"
#include "trainer/worker/member/effects.h"
#include "trainer/worker/step_slot.h"
#include "trainer/worker/worker_config.h"

namespace antdt::worker {

class StepExchange {
 public:
  explicit StepExchange(const ExchangeRules& rules) : rules_(rules) {}

  // A training phase begins, or goes on in a new generation: all replicas are equal, and the places
  // of all ranks are 0. `domains`: by rank, the name of the domain in which it is.
  void begin(std::uint32_t rank, const std::vector<std::string>& domains);
  // From the next step on, what the plan in force says of Gaia's threshold; empty: nothing.
  void plan_threshold(std::optional<double> threshold);

  // ------------------------------------------------------------------ the step after `step`
  struct Course {
    // What precedes computing, if anything does: an operation.
    std::optional<std::variant<Mix, ExchangeUpdates>> first;
    BeginStep begin;
  };
  [[nodiscard]] Course course(Step step) const;
  // What divides the gradient, this member's or the sum, in a step of all records' `weight`.
  [[nodiscard]] double divisor(double weight) const;

  // ------------------------------------------------------------------ what all concluded
  // The step after `step`: applied, or dropped. Returns whether replicas may differ because of it.
  // Then they must be consolidated before anybody relies on one (TrainingState::consolidated).
  [[nodiscard]] bool concluded(Step step, const Agreement& agreed);
  void consolidated();
  // What the newest visit since begin() found.
  [[nodiscard]] const std::optional<wire::Visit>& visit() const { return visit_; }

  // ------------------------------------------------------------------ what that means
  // By rank, up to which place records may be committed.
  [[nodiscard]] std::span<const std::uint64_t> committable() const { return committable_; }
  // By rank, up to which place records are in the model that these ranks, one at least, go on with,
  // if their replicas differ.
  [[nodiscard]] std::vector<std::uint64_t> merged(std::span<const std::uint32_t> holders) const;
  // What makes the replicas of these ranks equal. In a new generation they have other ranks, which
  // ascend: those `now`, in the same order.
  [[nodiscard]] Consolidate consolidation(std::span<const std::uint32_t> holders,
                                          std::vector<std::uint32_t> now) const;

 private:
  struct Summing {
    std::vector<std::uint64_t> places;  // after the last concluded step
  };
  struct Mixing {
    sync::ds_sync::GroupSchedule schedule;
    sync::MergeLedger ledger;
  };
  // The steps since the last visit, or since replicas were equal or the threshold changed.
  struct Round {
    std::uint64_t steps = 0, sent_bytes = 0, dense_bytes = 0;
  };
  struct Exchanging {
    Gaia rules;
    std::vector<std::string> domain_of;  // by rank
    std::vector<DomainRanks> domains;
    sync::gaia::StepLedger ledger;
    Round round = {};
    // Whether the step after `step` has a whole exchange, and whether it has a visit.
    [[nodiscard]] bool is_whole(Step step) const {
      return step.next().value % rules.whole_every == 0;
    }
    [[nodiscard]] bool has_visit(Step step) const {
      return rules.visit_every > 0 && step.next().value % rules.visit_every == 0;
    }
  };
  using State = std::variant<Summing, Mixing, Exchanging>;
  [[nodiscard]] Course course_of(const Summing& state, Step step) const;
  [[nodiscard]] Course course_of(const Mixing& state, Step step) const;
  [[nodiscard]] Course course_of(const Exchanging& state, Step step) const;
  [[nodiscard]] bool conclude(Summing& state, Step step, const Agreement& agreed);
  [[nodiscard]] bool conclude(Mixing& state, Step step, const Agreement& agreed);
  [[nodiscard]] bool conclude(Exchanging& state, Step step, const Agreement& agreed);
  void count_round(Exchanging& state, Step step, const Agreement& agreed);
  [[nodiscard]] double threshold_of(const Gaia& rules) const {
    return threshold_.value_or(rules.threshold);
  }

  const ExchangeRules rules_;
  std::uint32_t rank_ = 0;
  std::uint32_t members_ = 1;
  State state_;
  std::vector<std::uint64_t> committable_;
  std::optional<double> threshold_;  // of the plan in force
  std::optional<wire::Visit> visit_;
};

}  // namespace antdt::worker
