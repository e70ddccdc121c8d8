// One training phase of one member, step by step.
//
// A step: compute the share of the plan in force with whatever records are at
// hand, reduce the gradients, gather the slots, then do what all members
// conclude from them. The phase is over when the slots have counted all its
// records and one empty step more has made the last one stable. It ends early,
// with such a step too, when one member's slot asks for that: it leaves, or was
// told that the membership is to change.
//
// The phase may have begun in an earlier generation: its records that are in the
// model already are in PhaseStart, its loss until then in the state.
#pragma once

#include <optional>

#include "core/result.h"
#include "core/wire/messages.h"
#include "trainer/loop/checkpoint_writer.h"
#include "trainer/loop/hold.h"
#include "trainer/loop/hop_timer.h"
#include "trainer/loop/step_slot.h"
#include "trainer/loop/training_state.h"

namespace antdt::trainer {

class TrainPhase {
 public:
  TrainPhase(Tools& tools, TrainingState& state, Collective& collective, CheckpointWriter& writer,
             const wire::PhaseStart& start);

  // Until the phase ends. The data set's prefetcher must have been started.
  // Errors are this member's own (its data, its job daemon's refusal); a broken
  // collective is PhaseEnd::kOver.
  [[nodiscard]] Result<PhaseEnd> run();

  // Why the generation is over, when run() answered kOver.
  [[nodiscard]] const std::string& breakage() const { return breakage_; }

 private:
  // What this member did in the step so far.
  struct Own {
    StepSlot slot;
    client::BatchTimes times;
    bool short_of_data = false;
  };
  [[nodiscard]] Result<Own> compute_share();
  [[nodiscard]] Result<client::TakeStatus> compute_micro_batch(Own& own, bool last);
  // The slot all-gather, and the gradients before it unless the step is empty.
  [[nodiscard]] Result<Agreement> exchange(Own& own, bool empty);
  void conclude(const Agreement& agreed, Own& own);
  void switch_plan(PlanVersion version);
  [[nodiscard]] std::uint64_t checkpoint_wanted() const;
  void checkpoint(const Agreement& agreed);
  void report(const Own& own);
  void send_progress(bool done);
  [[nodiscard]] wire::StepHistory steps_to_tell();
  void wait_for_records();
  [[nodiscard]] Status measure_hop();
  [[nodiscard]] PhaseEnd broken(const Error& error);
  [[nodiscard]] bool wants_to_leave() const;
  [[nodiscard]] bool wants_to_stop() const;
  [[nodiscard]] bool complete() const { return counted_ >= remaining_; }
  [[nodiscard]] Result<PhaseEnd> finish();

  Tools& tools_;
  TrainingState& state_;
  Collective& collective_;
  CheckpointWriter& writer_;
  const wire::PhaseStart start_;
  const std::uint64_t remaining_;  // records of the phase that are not in the model yet
  std::uint64_t counted_ = 0;      // of them, in steps that completed
  std::uint64_t place_ = 0;        // records of this member, in steps that completed
  std::uint64_t stable_place_ = 0;
  bool plan_changed_ = true;    // the next step is the first under its plan
  bool stopped_early_ = false;  // somebody asked for it
  std::string breakage_;
  MonoTime steps_told_;  // when it was said last which records made them
  Hold hold_;
  HopTimer hop_timer_;
  std::optional<Duration> hop_;  // measured, and not reported yet
};

}  // namespace antdt::trainer
