// A worker as a member of a collective, from its first join to its exit: the machine that
// antdt-trainer, the simulation and every other driver run. No I/O, no clock, no thread.
//
//   joining ──Form──> building ──> awaiting roster ──Roster──> connecting ─┐
//                                                                           │
//      ┌──(it is to read a checkpoint)── reading <──────────────────────────┤
//      └──> comparing states <──────────────────────────────────────────────┘
//                 └──> passing state ──> hashing state ──> awaiting settle ──Settle──> settled
//
//   settled ──PhaseStart──> training, evaluating ──its end──> settled
//   settled ──PhaseStart "finish"──> settled, and the model is kept (final_model.h)
//   any but joining ──the generation ends──> joining    (says so with a Join)
//   any that waits for an order ──Form──> building      (of a new generation)
//   any ──Leave, SIGTERM──> ended                       (in a phase at the end of a step)
//
// A generation ends here with Abort, with a Regroup (in a phase at the end of a
// step, by agreement), with a collective that breaks, or when it cannot be formed.
// Process and training state stay. The member waits for the next Form as long as
// its agent keeps it: whether there is one is for the job daemon to decide.
//
// A Form says whose training state goes on (`base`). In it this member holds
// either that state or nothing; who lacks it receives it before Ready
// (heal_plan.h). A checkpoint is read by the one member that the Form names; the
// others receive what it read. Orders of other generations than the one formed last change
// nothing, but for an Abort of one ahead: it has answered this member's join.
//
// Nothing here is durable: a process that is started again joins with nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/membership_messages.h"
#include "core/wire/training_messages.h"
#include "trainer/worker/eval_phase.h"
#include "trainer/worker/member/effects.h"
#include "trainer/worker/member/final_model.h"
#include "trainer/worker/member/inputs.h"
#include "trainer/worker/member/member_state.h"
#include "trainer/worker/member/train_phase.h"
#include "trainer/worker/worker_config.h"

namespace antdt::worker {

class MemberMachine {
 public:
  explicit MemberMachine(WorkerConfig config);
  MemberMachine(const MemberMachine&) = delete;
  MemberMachine& operator=(const MemberMachine&) = delete;

  // Appends to `out`. Started comes first, and nothing after the end.
  void step(const Input& input, MonoTime now, Effects& out);

  // Nothing is under way: the next order is wanted, or TimePassed.
  [[nodiscard]] bool awaits_order() const;
  // When TimePassed may make a difference; none: not by itself.
  [[nodiscard]] std::optional<MonoTime> deadline() const { return final_model_.deadline(); }
  [[nodiscard]] bool ended() const { return std::holds_alternative<Ended>(state_); }
  // In a generation that settled, and in no phase, or the last one is done.
  [[nodiscard]] bool settled() const { return std::holds_alternative<Settled>(state_); }

  [[nodiscard]] const TrainingState& training() const { return member_.training; }
  // The newest that was formed with this member, settled or not.
  [[nodiscard]] Generation generation() const { return generation_; }
  // What it trains or evaluates, or did last.
  [[nodiscard]] const wire::PhaseStart& phase() const { return phase_; }
  // In a training phase: records of this member in steps that completed; else 0.
  [[nodiscard]] std::uint64_t place() const;
  [[nodiscard]] const char* state_name() const;

 private:
  struct Joining {};
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
  struct PassingState {
    std::vector<WorkerId> members;
    bool receives = false;
  };
  struct HashingState {};
  struct AwaitingSettle {};
  struct Settled {};
  struct Ended {};
  using State = std::variant<Joining, Building, AwaitingRoster, Connecting, Reading,
                             ComparingStates, PassingState, HashingState, AwaitingSettle, Settled,
                             TrainPhase, EvalPhase, Ended>;

  // member_machine.cc: membership
  void on(const Started& input, MonoTime now, Effects& out);
  void on(const FormOrdered& input, MonoTime now, Effects& out);
  void on(const CollectiveBuilt& input, MonoTime now, Effects& out);
  void on(const RosterArrived& input, MonoTime now, Effects& out);
  void on(const CollectiveConnected& input, MonoTime now, Effects& out);
  void on(const StateRead& input, MonoTime now, Effects& out);
  void on(const StateUnreadable& input, MonoTime now, Effects& out);
  void on(const StatesCompared& input, MonoTime now, Effects& out);
  void on(const StatePassed& input, MonoTime now, Effects& out);
  void on(const StateHashed& input, MonoTime now, Effects& out);
  void on(const GenerationSettled& input, MonoTime now, Effects& out);
  void on(const GenerationAborted& input, MonoTime now, Effects& out);
  void on(const RegroupOrdered& input, MonoTime now, Effects& out);
  void on(const CollectiveBroke& input, MonoTime now, Effects& out);
  // member_phases.cc: what it does in a generation, and its end
  void on(const PhaseStarted& input, MonoTime now, Effects& out);
  void on(const BatchEvaluated& input, MonoTime now, Effects& out);
  void on(const Saved& input, MonoTime now, Effects& out);
  void on(const Heard& input, MonoTime now, Effects& out);
  void on(const TimePassed& input, MonoTime now, Effects& out);
  void on(const LeaveOrdered& input, MonoTime now, Effects& out);
  void on(const WorkFailed& input, MonoTime now, Effects& out);
  // MicroBatchComputed and all else that a training phase alone is answered with.
  template <class Answer>
  void on(const Answer& input, MonoTime now, Effects& out);

  void join(std::string problem, std::string unreadable, Effects& out);
  void compare_states(std::vector<WorkerId> members, Effects& out);
  void hash_state(std::vector<WorkerId> members, Effects& out);
  // Whether this member holds the state that goes on; nothing: it holds another one.
  [[nodiscard]] std::optional<bool> holds_state();
  // The generation is over here: lets go of it and joins again.
  void dissolve(const std::string& reason, Effects& out, std::string problem = {},
                std::string unreadable = {});
  // Where the generation is over anyway, this is no problem of its own.
  void formation_failed(const std::string& why, Effects& out);
  void phase_ended(PhaseEnd end, std::string reason, Effects& out);
  void give_up(Error error, Effects& out);
  void leave(Effects& out);
  [[nodiscard]] bool in_generation() const;
  template <class S>
  S& expect();
  void check_invariants() const;

  const WorkerConfig config_;
  State state_;
  MemberState member_;
  FinalModel final_model_{member_};
  Generation generation_;
  wire::Form form_;  // of it
  wire::PhaseStart phase_;
  // The last generation that this member was ready for, and its members. If it
  // settled this member holds its state, though the Settle may never have come.
  Generation ready_;
  std::vector<WorkerId> ready_members_;
};

}  // namespace antdt::worker
