// A worker of parameter servers, from its first join to its exit: the machine that antdt-trainer
// and the simulation run. No I/O, no clock, no thread.
//
//   joining ──PsRoster──> opening (the tables, and their first values) ──> linked
//   linked ──PhaseStart "train"──> training ──its end──> linked
//   linked ──PhaseStart "eval"──> settling ──> evaluating ──its end──> linked
//   any but joining ──the group is over──> joining      (says so with a Join)
//   any that waits for an order ──PsRoster──> opening   (of a new generation)
//   any ──Leave, SIGTERM──> ended                       (in a phase between two batches)
//
// There is no collective: a worker meets the others at the servers alone, and the model is theirs.
// So it brings nothing into a new generation, and nothing is healed. A group is over here with
// Abort, with Regroup, with an order of a later generation, or when a server says so. What this
// worker waits for when nobody answers any more is ended by its driver, kLeaveGrace after it was
// asked to leave.
//
// Nothing here is durable. How far its places may be applied goes with the next Join, since the
// servers of a group that is over cannot be asked.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/membership_messages.h"
#include "core/wire/training_messages.h"
#include "trainer/worker/eval_phase.h"
#include "trainer/worker/servers/ps_effects.h"
#include "trainer/worker/servers/ps_inputs.h"
#include "trainer/worker/servers/ps_state.h"
#include "trainer/worker/servers/ps_train_phase.h"
#include "trainer/worker/worker_config.h"

namespace antdt::worker::ps_worker {

class PsMachine {
 public:
  explicit PsMachine(WorkerConfig config);
  PsMachine(const PsMachine&) = delete;
  PsMachine& operator=(const PsMachine&) = delete;

  // Appends to `out`. Started comes first, and nothing after the end.
  void step(const Input& input, MonoTime now, Effects& out);

  // Nothing is under way: the next order is wanted, or TimePassed.
  [[nodiscard]] bool awaits_order() const {
    return std::holds_alternative<Joining>(state_) || std::holds_alternative<Linked>(state_);
  }
  [[nodiscard]] bool ended() const { return std::holds_alternative<Ended>(state_); }

  // The newest whose servers were named.
  [[nodiscard]] Generation generation() const { return generation_; }
  [[nodiscard]] std::uint64_t version() const { return worker_.version; }
  // What it trains or evaluates, or did last.
  [[nodiscard]] const wire::PhaseStart& phase() const { return phase_; }
  // In a phase: records of this worker that are in the model, or evaluated; else 0.
  [[nodiscard]] std::uint64_t place() const;
  [[nodiscard]] const char* state_name() const;

 private:
  struct Joining {};
  struct Opening {};
  struct Linked {};
  struct Settling {};
  struct Ended {};
  using State = std::variant<Joining, Opening, Linked, PsTrainPhase, Settling, EvalPhase, Ended>;

  void on(const Started& input, MonoTime now, Effects& out);
  void on(const ServersNamed& input, MonoTime now, Effects& out);
  void on(const ServersOpened& input, MonoTime now, Effects& out);
  void on(const PhaseStarted& input, MonoTime now, Effects& out);
  void on(const GenerationAborted& input, MonoTime now, Effects& out);
  void on(const RegroupOrdered& input, MonoTime now, Effects& out);
  void on(const LeaveOrdered& input, MonoTime now, Effects& out);
  void on(const Heard& input, MonoTime now, Effects& out);
  void on(const TimePassed&, MonoTime, Effects&) {}
  void on(const PlanHeld& input, MonoTime now, Effects& out);
  void on(const CommitSaid& input, MonoTime now, Effects& out);
  void on(const PushDecided& input, MonoTime now, Effects& out);
  void on(const ServersSettled& input, MonoTime now, Effects& out);
  void on(const BatchEvaluated& input, MonoTime now, Effects& out);
  void on(const ServersLost& input, MonoTime now, Effects& out);
  void on(const WorkFailed& input, MonoTime now, Effects& out);
  // BatchTaken and all else that a training phase alone is answered with.
  template <class Answer>
  void on(const Answer& input, MonoTime now, Effects& out);

  void join(std::string problem, Effects& out);
  // Whether an order is of the group that it is in; one of a later group ends that.
  [[nodiscard]] bool concerns(Generation generation, Effects& out);
  // The group is over here: lets go of it and joins again.
  void dissolve(const std::string& reason, Effects& out, std::string problem = {});
  void phase_ended(PhaseEnd end, const std::string& reason, Effects& out);
  void give_up(Error error, Effects& out);
  void leave(Effects& out);
  template <class S>
  S& expect();

  const WorkerConfig config_;
  State state_;
  PsState worker_;
  TimeUse resting_ = TimeUse::kStartup;  // what time goes to while it waits for orders
  Generation generation_;
  wire::PhaseStart phase_;
  CommitSaid commit_said_;  // to the servers of this group
  wire::PsSaid said_;       // to those of the one before
};

}  // namespace antdt::worker::ps_worker
