// A worker as a member of a collective, from its first join to its exit. antdt-trainer, the
// simulation and every other driver run this machine. No I/O, no clock, no thread.
//
//   joining ──Form──> forming (formation.h) ──(it settles)──> settled
//
//   settled ──PhaseStart──> training, evaluating ──its end──> settled
//   settled ──PhaseStart "finish"──> settled, and the model is kept (final_model.h)
//   any but joining ──the generation ends──> joining    (reported with a Join)
//   any that waits for an order ──Form──> forming       (a new generation)
//   any ──Leave, SIGTERM──> ended                       (in a phase at the end of a step)
//
// A generation ends here with Abort, with a Regroup (in a phase at the end of a step, by
// agreement), with a collective that breaks, or when it cannot be formed. Process and training
// state stay. The member waits for the next Form as long as its agent keeps it: the job daemon
// decides whether there is one.
//
// Orders of other generations than the one that was formed last change nothing, except for an Abort
// of a later one, which answers this member's join.
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
#include "trainer/worker/member/formation.h"
#include "trainer/worker/member/inputs.h"
#include "trainer/worker/member/member_state.h"
#include "trainer/worker/member/standing_model.h"
#include "trainer/worker/member/train_phase.h"
#include "trainer/worker/worker_config.h"

namespace antdt::worker {

class MemberMachine {
 public:
  explicit MemberMachine(WorkerConfig config);
  MemberMachine(const MemberMachine&) = delete;
  MemberMachine& operator=(const MemberMachine&) = delete;

  // Appends to `out`. Started must come first, and nothing after the end.
  void step(const Input& input, MonoTime now, Effects& out);

  // No operation is in progress: the machine wants the next order, or TimePassed.
  [[nodiscard]] bool awaits_order() const;
  // When TimePassed may make a difference; empty: it would not.
  [[nodiscard]] std::optional<MonoTime> deadline() const {
    return settled() && standing_model_.due() ? MonoTime{} : final_model_.deadline();
  }
  [[nodiscard]] bool ended() const { return std::holds_alternative<Ended>(state_); }
  // Whether it is in a settled generation, and in no phase, or done with the last one.
  [[nodiscard]] bool settled() const { return std::holds_alternative<Settled>(state_); }

  [[nodiscard]] const TrainingState& training() const { return member_.training; }
  // The newest generation that was formed with this member, settled or not.
  [[nodiscard]] Generation generation() const { return generation_; }
  // The phase that it trains or evaluates, or did last.
  [[nodiscard]] const wire::PhaseStart& phase() const { return phase_; }
  // In a training phase: how many records of this member are in completed steps; else 0.
  [[nodiscard]] std::uint64_t place() const;
  // See TrainingEnded.
  [[nodiscard]] bool may_end() const;
  [[nodiscard]] const char* state_name() const;

 private:
  struct Joining {};
  struct Settled {};
  struct Ended {};
  using State = std::variant<Joining, Formation, Settled, TrainPhase, EvalPhase, Ended>;

  // member_machine.cc: membership
  void on(const Started& input, MonoTime now, Effects& out);
  void on(const FormOrdered& input, MonoTime now, Effects& out);
  void on(const RosterArrived& input, MonoTime now, Effects& out);
  void on(const GenerationSettled& input, MonoTime now, Effects& out);
  void on(const GenerationAborted& input, MonoTime now, Effects& out);
  void on(const RegroupOrdered& input, MonoTime now, Effects& out);
  void on(const CollectiveBroke& input, MonoTime now, Effects& out);
  void on(const RowsUnread& input, MonoTime now, Effects& out);
  // member_phases.cc: what it does in a generation, and its end
  void on(const PhaseStarted& input, MonoTime now, Effects& out);
  void on(const BatchEvaluated& input, MonoTime now, Effects& out);
  void on(const Saved& input, MonoTime now, Effects& out);
  void on(const Heard& input, MonoTime now, Effects& out);
  void on(const TimePassed& input, MonoTime now, Effects& out);
  void on(const LeaveOrdered& input, MonoTime now, Effects& out);
  void on(const WorkFailed& input, MonoTime now, Effects& out);
  void on(const Consolidated& input, MonoTime now, Effects& out);
  // Inputs that only the formation of a generation, or a training phase, handles.
  template <class Answer>
  void on(const Answer& input, MonoTime now, Effects& out);

  // `problem`: why a generation could not be formed here; empty: it was not this member's fault.
  void join(const Formation::Failed& problem, Effects& out);
  void formation_ended(Formation::End end, Effects& out);
  void formation_failed(const Formation::Failed& failed, Effects& out);
  // The generation is over for this member: releases it and joins again.
  void dissolve(const std::string& reason, Effects& out, const Formation::Failed& problem = {});
  void phase_ended(PhaseEnd end, std::string reason, Effects& out,
                   const Formation::Failed& problem = {});
  void give_up(Error error, Effects& out);
  void leave(Effects& out);
  [[nodiscard]] bool in_generation() const;
  void check_invariants() const;

  const WorkerConfig config_;
  State state_;
  MemberState member_;
  FinalModel final_model_{member_};
  StandingModel standing_model_{member_};
  Generation generation_;
  wire::PhaseStart phase_;
};

}  // namespace antdt::worker
