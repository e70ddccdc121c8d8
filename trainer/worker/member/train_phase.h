// One training phase of one member, step by step. Pure.
//
//   begin ──> computing ──> reducing ──> gathering ──> applying ──> switching plan ─┐
//                 ^                          │  └─(nothing to apply)─┘ └(the same)─┐│
//                 │                          │                                     vv
//                 └──(records there)── awaiting records <── measuring hop <── (step concluded)
//                                            │                                      │
//                                            │     (all counted, or a member leaves) v
//                                          ended <──────────────── one more step, without records
//
// If members share the step (trainer/worker/sharing), each takes its part of the records at once,
// computes some of them, and asks for more until its desk has nothing left. Whether they share the
// next step, the member of rank 0 says in its slot.
//
//   taking part ──> computing <──> asking ──> reducing
//
// The records of its part are in its slot, whoever computed them; their weights and losses are in
// the slots of those that did.
//
// How members agree on the model is up to the exchange (exchange.h). Where replicas differ, a
// member changes its replica together with others before it computes, and its gradients are summed
// with those of some members only, or not at all:
//
//   exchanging ──> computing ──> (reducing) ──> gathering ──> ...
//
// Then replicas are consolidated in a step without records, before its slots are gathered: before
// an ordered checkpoint, and in the last step. Who has gathered these knows that all members have
// consolidated, so what it writes or commits is in the replica of each.
//
//   consolidating ──> gathering ──> ...
//
// In a step, a member computes the share of the plan in force with the records that it has, reduces
// the gradients, gathers the slots, and then does what all members conclude from them. The phase is
// over when the slots have counted all its records, and one empty step more has made the last one
// stable. It ends early, also with such a step, if a member's slot asks for that: the member
// leaves, or was told that the membership will change.
//
// If the program skipped records of the step, the member gathers only when the job daemon has
// stored which (telling skips, between reducing and gathering): once the step completes, it may be
// the survivors that commit these records (docs/delivery.md, "Records that a program skips").
//
// Where embedding rows are on servers (docs/synchronisation/hybrid.md), the member sends them its
// part of the step before it reduces, and gathers only when all of them have it, also of a step
// without records. So who has the slots of all knows that every server has every part.
//
//   computing ──> sending part ──> reducing ──> staging ──> gathering
//
// The phase may have begun in an earlier generation. Then PhaseStart counts its records that are
// already in the model, and the state has its loss until then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/wire/membership_messages.h"
#include "core/wire/training_messages.h"
#include "trainer/worker/hold.h"
#include "trainer/worker/member/effects.h"
#include "trainer/worker/member/hop_timer.h"
#include "trainer/worker/member/inputs.h"
#include "trainer/worker/member/member_state.h"
#include "trainer/worker/step_slot.h"

namespace antdt::worker {

class TrainPhase {
 public:
  enum class State : std::uint8_t {
    kExchanging,       // Mix, ExchangeUpdates
    kConsolidating,    // Consolidate
    kComputing,        // ComputeMicroBatch
    kTakingPart,       // TakePart
    kAsking,           // AskForRun
    kSendingPart,      // SendPart
    kReducing,         // Reduce
    kTellingSkips,     // AwaitSkipsTold
    kStaging,          // AwaitPartStaged
    kGathering,        // GatherSlots
    kApplying,         // Apply
    kSwitchingPlan,    // TakePlan
    kMeasuringHop,     // MeasureHop
    kAwaitingRecords,  // AwaitRecords
    kEnded,
  };

  TrainPhase(MemberState& member, wire::PhaseStart start, MonoTime now);

  // Each returns how the phase ended, once it has.
  using End = std::optional<PhaseEnd>;
  End begin(MonoTime now, Effects& out);
  End on(const Mixed& input, MonoTime now, Effects& out);
  End on(const UpdatesExchanged& input, MonoTime now, Effects& out);
  End on(const Consolidated& input, MonoTime now, Effects& out);
  End on(const MicroBatchComputed& input, MonoTime now, Effects& out);
  End on(const TrainingEnded& input, MonoTime now, Effects& out);
  End on(const PartTaken& input, MonoTime now, Effects& out);
  End on(const RunAnswered& input, MonoTime now, Effects& out);
  End on(const PartSent& input, MonoTime now, Effects& out);
  End on(const Reduced& input, MonoTime now, Effects& out);
  End on(const SkipsTold& input, MonoTime now, Effects& out);
  End on(const PartStaged& input, MonoTime now, Effects& out);
  End on(const SlotsGathered& input, MonoTime now, Effects& out);
  End on(const Applied& input, MonoTime now, Effects& out);
  End on(const PlanTaken& input, MonoTime now, Effects& out);
  End on(const HopMeasured& input, MonoTime now, Effects& out);
  End on(const RecordsAwaited& input, MonoTime now, Effects& out);
  // Forgets what this member computed for the step that did not complete; its records are granted
  // again.
  void broke(std::string why, Effects& out);

  [[nodiscard]] State state() const { return state_; }
  // Whether the program can end the training in place of what is asked now: it has done nothing for
  // the present step.
  [[nodiscard]] bool may_end() const {
    const bool asks = state_ == State::kComputing || state_ == State::kReducing;
    return asks && own_.micro_batches == 0 && !own_.shared;
  }
  [[nodiscard]] const wire::PhaseStart& start() const { return start_; }
  // How many records of this member are in completed steps; and how many of these may be committed,
  // because the model has them whoever is lost.
  [[nodiscard]] std::uint64_t place() const { return place_; }
  [[nodiscard]] std::uint64_t stable_place() const { return stable_place_; }
  // Why the generation is over, if the phase ended with kOver.
  [[nodiscard]] const std::string& breakage() const { return breakage_; }
  void check_invariants() const;

 private:
  // What this member did in the present step so far.
  struct Own {
    StepSlot slot;
    client::BatchTimes times;
    Duration exchanged{};  // how long the exchange before computing took
    Duration asked{};      // how long it waited for its desk's answers
    bool shared = false;   // with other members
    bool empty = false;    // a step that has no records, whoever has some
    std::uint32_t micro_batches = 0;
    std::uint64_t computed = 0;   // records; others than those of its slot in a shared step
    std::uint64_t of_others = 0;  // of these: records of other members' parts
    bool skips = false;           // some of its records
    bool visit = false;           // replicas are evaluated in it
  };
  static constexpr Duration kTellSteps = std::chrono::seconds(1);  // from one report to the next
  // The reason why the present step is the last one.
  enum class Last : std::uint8_t { kNot, kComplete, kStoppedTogether };

  End next_step(MonoTime now, Effects& out);
  End end_training(Effects& out);
  End exchanged(MonoTime now, Effects& out);
  void begin_step(MonoTime now, Effects& out);
  void compute(Effects& out);
  [[nodiscard]] sharing::ShareSeat& seat();
  void begin_shared_step(MonoTime now, Effects& out);
  void compute_run(const sharing::Run& run, MonoTime now, Effects& out);
  void say_kind();
  void compare_kinds(MonoTime now);
  [[nodiscard]] std::optional<wire::StepKinds> compared_kinds() const;
  End run_computed(const MicroBatchComputed& input, MonoTime now, Effects& out);
  void offer_part(MonoTime now, Effects& out);
  void reduce(MonoTime now, Effects& out);
  void computed(MonoTime now, Effects& out);
  // `first`: the place of the first record of the micro-batch.
  void tell_skips(std::uint64_t first, const std::vector<SkippedRecord>& skipped, Effects& out);
  void last_step(Last why, MonoTime now, Effects& out);
  void empty_step(MonoTime now, Effects& out);
  void send_part(Effects& out);
  void sum(MonoTime now, Effects& out);
  void await_staged(MonoTime now, Effects& out);
  void gather(MonoTime now, Effects& out);
  End conclude(MonoTime now, Effects& out);
  End conclude_rest(MonoTime now, Effects& out);
  void count_step();
  End go_on(MonoTime now, Effects& out);
  End await_records(MonoTime now, Effects& out);
  End end(MonoTime now, Effects& out);
  void take_up(const wire::Plan& plan, MonoTime now, Effects& out);
  [[nodiscard]] std::uint64_t checkpoint_wanted() const;
  [[nodiscard]] bool replicas_may_differ() const {
    return member_.training.consolidated == Generation{};
  }
  // The members agreed on a checkpoint that is not written yet.
  [[nodiscard]] bool checkpoint_due() const;
  void write_checkpoint(Effects& out);
  void report(Effects& out);
  void send_progress(bool done, MonoTime now, Effects& out);
  [[nodiscard]] wire::StepHistory steps_to_tell(MonoTime now);
  [[nodiscard]] bool complete() const { return counted_ >= remaining_; }
  void expect(State state) const;

  MemberState& member_;
  const wire::PhaseStart start_;
  const std::uint64_t remaining_;  // records of the phase that are not in the model yet
  State state_ = State::kComputing;
  Last last_ = Last::kNot;
  Own own_;
  BeginStep step_;             // how the gradients of the present step are summed
  sharing::Run run_;           // that it computes, of a shared step
  Agreement agreed_;           // of the concluded step
  MonoTime began_{};           // when the present exchange, update or measurement began
  MonoTime concluded_{};       // when the last step was over
  bool undisturbed_ = false;   // nothing but this step has taken time since then
  std::uint64_t counted_ = 0;  // how many of the remaining records are in completed steps
  std::uint64_t place_ = 0;
  std::uint64_t stable_place_ = 0;
  bool plan_changed_ = true;  // the next step is the first one under its plan
  std::string breakage_;
  MonoTime steps_told_;  // when the records of the steps were last reported
  Hold hold_;
  HopTimer hop_timer_;
  std::optional<Duration> hop_;  // measured and not reported yet
};

}  // namespace antdt::worker
