// How a member comes into a generation that is formed: from its Form to the Settle. Pure.
//
//   building ──> awaiting roster ──Roster──> connecting ─┐
//                                                        │
//      ┌──(it is to read a checkpoint)── reading <───────┤
//      └──> comparing states <───────────────────────────┤
//             │   │                                      │
//             │   └──(replicas may differ)── consolidating
//             └──> passing state ──> hashing state ──> awaiting settle ──Settle──> (settled)
//
// A Form says whose training state goes on (`base`). Relative to that, this member holds either the
// state or nothing; a member that lacks it receives it before Ready (heal_plan.h). The one member
// that the Form names reads a checkpoint; the others receive what it read.
//
// Where replicas may differ (exchange.h), the members with the highest version first make theirs
// equal. Then all compare again: who sees the result knows that all of these have completed it, so
// what is in the replica now is not lost with any of them.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/membership_messages.h"
#include "trainer/worker/member/effects.h"
#include "trainer/worker/member/inputs.h"
#include "trainer/worker/member/member_state.h"
#include "trainer/worker/worker_config.h"

namespace antdt::worker {

class Formation {
 public:
  // How it ended.
  struct Settled {};
  // The generation cannot be formed with this member as it is.
  struct Failed {
    std::string why;
    std::optional<StateUnreadable> unread = {};  // the checkpoint could not be read
    bool lasts = false;                          // the next generation will have the same problem
  };
  struct GaveUp {
    Error error;
  };
  using End = std::optional<std::variant<Settled, Failed, GaveUp>>;

  Formation(const WorkerConfig& config, MemberState& member, const FormOrdered& order);

  void begin(Effects& out);
  // Each answers how it ended, once it has.
  End on(const CollectiveBuilt& input, Effects& out);
  End on(const RosterArrived& input, Effects& out);
  End on(const CollectiveConnected& input, Effects& out);
  End on(const StateRead& input, Effects& out);
  End on(const StateUnreadable& input, Effects& out);
  End on(const StatesCompared& input, Effects& out);
  End on(const Consolidated& input, Effects& out);
  End on(const StatePassed& input, Effects& out);
  End on(const StateHashed& input, Effects& out);
  End on(const GenerationSettled& input, Effects& out);

  [[nodiscard]] bool awaits_order() const;
  [[nodiscard]] const char* state_name() const;

 private:
  struct Building {};
  struct AwaitingRoster {};
  struct Connecting {
    std::vector<WorkerId> members;
  };
  struct Reading {
    std::vector<WorkerId> members;
  };
  struct ComparingStates {
    std::vector<WorkerId> members;
    bool holds = false;
  };
  struct Consolidating {
    std::vector<WorkerId> members;
    std::vector<std::uint64_t> merged;  // TrainingState::consolidate
  };
  struct PassingState {
    std::vector<WorkerId> members;
    bool receives = false;
    Generation consolidated = {};  // of the state that passes
    bool on_device = false;        // HealPlan::on_device
  };
  struct HashingState {};
  struct AwaitingSettle {};
  using State = std::variant<Building, AwaitingRoster, Connecting, Reading, ComparingStates,
                             Consolidating, PassingState, HashingState, AwaitingSettle>;

  void share_steps(std::uint32_t members);
  End compare_states(std::vector<WorkerId> members, Effects& out);
  void compare(std::vector<WorkerId> members, bool holds, Effects& out);
  // `holders`: the ranks of those whose replicas become equal.
  End consolidate(std::vector<WorkerId> members, std::vector<std::uint32_t> holders, Effects& out);
  // Which ranks the holders had in the base. kCorrupt if a member says that it holds what it cannot
  // hold.
  [[nodiscard]] Result<std::vector<std::uint32_t>> ranks_in_base(
      const std::vector<WorkerId>& members, const std::vector<std::uint32_t>& holders) const;
  void hash_state(std::vector<WorkerId> members, bool on_device, Effects& out);
  // Whether the state of a settled generation goes on, and this member holds it.
  [[nodiscard]] bool holds_base() const;
  // Whether this member holds the state that goes on; empty: it holds another one.
  [[nodiscard]] std::optional<bool> holds_state();
  template <class S>
  S& expect();

  const WorkerConfig& config_;
  MemberState& member_;
  const Generation generation_;
  const wire::Form form_;
  std::string collective_ = {};  // what carries the bytes between members, once they are connected
  State state_;
};

}  // namespace antdt::worker
