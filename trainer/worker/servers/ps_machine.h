// A worker of parameter servers, from its first join to its exit. antdt-trainer and the simulation
// run this machine. No I/O, no clock, no thread.
//
//   joining ──PsRoster──> opening (the tables, and their first values) ──> linked
//   linked ──PhaseStart "train"──> training ──its end──> linked
//   linked ──PhaseStart "eval"──> settling ──> evaluating ──its end──> linked
//   any but joining ──the group is over──> joining      (reported with a Join)
//   any that waits for an order ──PsRoster──> opening   (of a new generation)
//   any ──Leave, SIGTERM──> ended                       (in a phase between two batches)
//
// There is no collective: workers meet only at the servers, which hold the model. So a worker
// brings nothing into a new generation, and nothing is healed. A group is over here with Abort,
// with Regroup, with an order of a later generation, or when a server says so. If nobody answers
// any more, the driver ends what this worker waits for kLeaveGrace after the worker was asked to
// leave.
//
// Nothing here is durable. The next Join reports how far the worker's places may be applied,
// because the servers of a group that is over cannot be asked.
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

  // Appends to `out`. Started must come first, and nothing after the end.
  void step(const Input& input, MonoTime now, Effects& out);

  // No operation is in progress: the machine wants the next order, or TimePassed.
  [[nodiscard]] bool awaits_order() const {
    return std::holds_alternative<Joining>(state_) || std::holds_alternative<Linked>(state_);
  }
  [[nodiscard]] bool ended() const { return std::holds_alternative<Ended>(state_); }

  // The newest generation whose servers were named.
  [[nodiscard]] Generation generation() const { return generation_; }
  [[nodiscard]] std::uint64_t version() const { return worker_.version; }
  // The phase that it trains or evaluates, or did last.
  [[nodiscard]] const wire::PhaseStart& phase() const { return phase_; }
  // In a phase: how many records of this worker are in the model, or evaluated; else 0.
  [[nodiscard]] std::uint64_t place() const;
  // Null: it keeps no replica of the dense parameters.
  [[nodiscard]] const ShadowChain* shadow() const {
    return worker_.shadow ? &*worker_.shadow : nullptr;
  }
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
  void on(const CentreHere& input, MonoTime now, Effects& out);
  void on(const ServersSettled& input, MonoTime now, Effects& out);
  void on(const BatchEvaluated& input, MonoTime now, Effects& out);
  void on(const ServersLost& input, MonoTime now, Effects& out);
  void on(const WorkFailed& input, MonoTime now, Effects& out);
  // BatchTaken and all other inputs that only a training phase handles.
  template <class Answer>
  void on(const Answer& input, MonoTime now, Effects& out);

  // `problem`: why the worker could not begin with the servers it was told of.
  void join(const std::optional<Error>& problem, Effects& out);
  // Whether an order is of the present group; an order of a later group ends the present one.
  [[nodiscard]] bool concerns(Generation generation, Effects& out);
  // The group is over for this worker: releases it and joins again.
  void dissolve(const std::string& reason, Effects& out, const std::optional<Error>& problem = {});
  void phase_ended(PhaseEnd end, const std::string& reason, Effects& out);
  void give_up(Error error, Effects& out);
  void leave(Effects& out);
  template <class S>
  S& expect();

  const WorkerConfig config_;
  State state_;
  PsState worker_;
  TimeUse resting_ = TimeUse::kStartup;  // what its time counts as while it waits for orders
  Generation generation_;
  wire::PhaseStart phase_;
  CommitSaid commit_said_;  // sent to the servers of this group
  wire::PsSaid said_;       // sent to those of the group before
};

}  // namespace antdt::worker::ps_worker
