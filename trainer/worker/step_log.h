// Which records made which step: the slots of every step, kept until the job daemon has recorded
// them. Pure.
//
// Each member keeps the log, so it survives the loss of any of them. Rank 0 sends it with its
// progress, and the members that hold the state send it before the next generation settles. Steps
// with equal numbers form one run, so the log's size follows changes of plan and records that came
// late. If nobody acknowledges it, it is bounded by forgetting the oldest steps.
#pragma once

#include <cstdint>
#include <span>

#include "core/ids.h"
#include "core/wire/membership_messages.h"

namespace antdt::worker {

class StepLog {
 public:
  StepLog() = default;
  // A log that another member sent along with the training state.
  explicit StepLog(wire::StepHistory history);

  // Steps from now on belong to `generation`; those of earlier ones are forgotten.
  void begin(Generation generation);
  // `step` completed. By rank: the members' places after it, and how many records each trained in
  // it.
  void add(Step step, std::uint64_t phase, std::span<const std::uint64_t> places,
           std::span<const std::uint64_t> records);
  // Steps up to `step` are recorded. A run that goes on behind it is kept whole.
  void forget(Step step);

  // The records behind these places of `phase`, by rank, are not in the model: they made no step.
  // A place is one that its rank had after some step.
  void keep(std::uint64_t phase, std::span<const std::uint64_t> places);

  // What must be sent; runs that were sent before may have grown.
  [[nodiscard]] const wire::StepHistory& history() const { return history_; }
  // The same, up to the last step of `phase` after which no rank is beyond its place here.
  [[nodiscard]] wire::StepHistory history_up_to(std::uint64_t phase,
                                                std::span<const std::uint64_t> places) const;

 private:
  void bound();
  wire::StepHistory history_;
  std::size_t numbers_ = 0;  // see StepHistory::kMaxNumbers
};

}  // namespace antdt::worker
